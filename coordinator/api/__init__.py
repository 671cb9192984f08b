"""Handle requests, in a file for each API of Kafka.

Start reading at `router`, then at a short one such as `heartbeat`. A file that has an `API_KEY` is
served, in its `VERSIONS`: a new API is a new file. The others help them. None decides anything of
groups or transactions: it asks the services of its `context`. kio decodes the frames, but for those
of `plain_commit`.
"""
