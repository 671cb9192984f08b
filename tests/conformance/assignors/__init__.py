"""Our assignors beside Kafka's own classes: the same inputs, the same answers."""
