"""Provide the replicated state machines behind coordinators: decide, append, apply, answer.

A shard is one partition of `__consumer_offsets` or `__transaction_state` with its state.
"""
