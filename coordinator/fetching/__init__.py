"""Keeps fetch sessions (KIP-227): the partitions that a client reads, between its requests.

Start reading at `session`. Records are read elsewhere (`coordinator.log`, `coordinator.api.fetch`).
"""
