"""Topologies, the DSL and the exactly-once runtime."""
