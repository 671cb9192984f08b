"""Test each place at which a record can fail, with each kind of poison and each handler."""
