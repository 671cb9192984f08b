"""Assign partitions to the members of a group: pure functions of members and topics.

Start reading at `range`, the simplest; `server` has those that the broker runs itself, `tasks`
those for stream applications. No assignor keeps anything between two calls.
"""
