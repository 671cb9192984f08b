"""Coordinate consumer groups (KIP-848), whose assignment the broker decides."""
