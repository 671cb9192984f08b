"""Fetch sessions (KIP-227): the partitions that a client reads, kept between its requests."""
