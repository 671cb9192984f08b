"""Handle requests, in a file for each API of Kafka.

Start reading at `router`, then at a short one such as `heartbeat`. A file decodes nothing and
decides nothing of groups or transactions: it asks the services of its `context`.
"""
