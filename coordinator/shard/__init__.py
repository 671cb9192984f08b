"""Provide the replicated state machines behind coordinators: decide, append, apply, answer.

A shard is one partition of `__consumer_offsets` or `__transaction_state` with its state. Start
reading at `shard`, then `decision` and `replay`. Nothing here knows what a record means, and no
state changes before its record is in the log.
"""
