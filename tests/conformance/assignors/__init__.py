"""The assignors of a leader beside Kafka's own classes: the same inputs, the same answers."""
