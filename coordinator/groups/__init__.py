"""Coordinate groups: members, generations or epochs, assignments and committed offsets.

Start reading at `service`, which answers for all groups, then `shard` and `state`. A decision is
pure and returns records; it never waits, and never reads the clock by itself.
"""
