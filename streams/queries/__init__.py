"""Read the stores of a running worker from outside of its stream threads.

Start reading at `read_only_stores`. A query sees what tasks have committed, never a transaction
that is open, and a store that is not here is named rather than taken for empty.
"""
