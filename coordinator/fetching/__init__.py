"""Fetch sessions (KIP-227): what a client reads, kept between its requests. Pure state."""
