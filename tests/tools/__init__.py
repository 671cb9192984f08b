"""Test that Kafka's own command-line tools print the same against both brokers."""
