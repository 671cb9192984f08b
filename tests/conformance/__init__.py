"""The same cases against the embedded broker and real Kafka: what Kafka answers is the truth."""
