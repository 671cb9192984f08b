"""Ask one application, in Kafka Streams and here, the same queries, and compare the answers."""
