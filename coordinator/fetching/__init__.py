"""Keeps fetch sessions (KIP-227): the partitions that a client reads, between its requests."""
