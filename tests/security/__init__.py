"""Test clients and applications against a Kafka that asks for TLS, SASL and ACLs."""
