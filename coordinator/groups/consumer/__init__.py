"""Coordinate consumer groups (KIP-848), whose assignment the broker decides.

Start reading at `heartbeat`, then `reconcile`. A member is told of a partition only when nobody
else has it any more; `target` computes who is to have it.
"""
