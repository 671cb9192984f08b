"""Coordinate groups: members, generations or epochs, assignments and committed offsets.

Start reading at `service`, which finds the shard of a group, then `state`. A decision is pure and
returns records; it never waits, and never reads the clock by itself.
"""
