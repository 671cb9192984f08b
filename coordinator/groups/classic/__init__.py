"""Coordinate classic groups: the leader assigns, the coordinator collects and distributes."""
