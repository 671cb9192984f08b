"""Hold the metrics that a running Kafka Streams has, as the yardstick of a worker's figures."""
