"""Run Apache Kafka with TLS, SASL and ACLs, and give the librdkafka settings of each way in."""
