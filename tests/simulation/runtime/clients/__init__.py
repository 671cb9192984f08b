"""confluent-kafka's clients in a simulation: its surface, librdkafka's rules, the world's network.

The runtime's own wrappers (`streams.runtime.clients`) run above them as they are, so that what they
make of an error is the product's doing.
"""
