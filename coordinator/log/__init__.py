"""Keep the logs of partitions on disk, with their indexes, retention and recovery.

Start reading at `partition`, then `segment` and `recovery`. Every call of files goes through
`disk`, and nothing here knows a request or a group.
"""
