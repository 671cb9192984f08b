"""Kafka 4.4's list of error codes, read from its jar."""
