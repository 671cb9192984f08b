"""Run the same cases against the embedded broker and real Kafka, whose answers are the truth."""
