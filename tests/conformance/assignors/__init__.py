"""Compare our assignors with Kafka's own classes on the same inputs."""
