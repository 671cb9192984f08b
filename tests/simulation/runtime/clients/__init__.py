"""Provide confluent-kafka's clients with librdkafka's rules on the simulated network.

The runtime's own wrappers (`streams.runtime.clients`) run above them as they are, so that what they
make of an error is the product's doing.
"""
