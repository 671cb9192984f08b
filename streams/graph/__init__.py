"""Describe an application as a graph of steps, before it is built or run.

Kafka Streams' `internals.graph`.
"""
