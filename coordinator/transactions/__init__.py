"""Coordinate transactions: which transaction a producer is in, and how it ends.

Start reading at `state`, which has the table of states, then `end_transaction`. Decisions return
records and an answer; only `apply` changes the state, and `markers` alone writes to other
partitions.
"""
