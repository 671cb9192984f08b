"""Replicated-state-machine shards: decide, append, apply, answer."""
