"""Describe an application as a graph of steps, before it is built or run.

Start reading at `nodes`, which has sources, steps and sinks, then `views`, what a later step may
request of a table. Nothing here processes a record. Kafka Streams' counterpart is
`internals.graph`.
"""
