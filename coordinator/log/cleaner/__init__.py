"""Compaction: of the records with one key only the last one stays. Kafka's rules, in slices."""
