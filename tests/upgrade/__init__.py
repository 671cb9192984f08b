"""Data directories of an earlier commit and of real Kafka are loaded, and ours by real Kafka."""
