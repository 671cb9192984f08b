"""Test the pure parts of the comparison with Kafka Streams."""
