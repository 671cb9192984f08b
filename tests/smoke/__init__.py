"""Run the smoke test of Kafka Streams, of theirs and of ours."""
