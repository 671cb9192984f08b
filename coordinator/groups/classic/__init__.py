"""Coordinate classic groups: the leader assigns, the coordinator collects and distributes.

Start reading at `state`, then `join` and `sync`. The coordinator never looks into an assignment.
"""
