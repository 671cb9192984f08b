"""Compacts logs by Kafka's rules, in slices: only the last record of each key stays."""
