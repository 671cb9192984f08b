"""Stop an application of Kafka Streams, and go on with the same one of Millrace."""
