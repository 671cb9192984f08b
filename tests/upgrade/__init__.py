"""Test data directories of an earlier commit and of real Kafka here, and ours in real Kafka."""
