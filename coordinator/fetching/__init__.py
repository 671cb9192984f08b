"""Keep fetch sessions (KIP-227): the partitions that a client reads, between its requests.

Start reading at `session`, then `session_cache`. Nothing here reads records: `api.fetch` does, from
`coordinator.log`.
"""
