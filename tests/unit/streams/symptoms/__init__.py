"""Test the codes of faults: that each error has one, and each code a page."""
