"""Kafka's list of error codes, read from its jar."""
