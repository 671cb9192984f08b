"""Classic groups: the leader assigns, the coordinator collects and hands out."""
