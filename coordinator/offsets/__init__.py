"""Hold committed offsets, and those that wait for the end of a transaction.

Start reading at `state`, then `commit` and `fetch`. These are decisions on values: what they decide
is written and applied by the shard of a group (`coordinator.groups`).
"""
