"""Kafka's own command-line tools, run against both brokers: they must print the same."""
