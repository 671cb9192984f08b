"""Run the smoke test of Kafka Streams on the embedded broker."""
