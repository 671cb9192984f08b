"""Implement the command `millrace`."""
