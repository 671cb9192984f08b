"""List Kafka Streams' public interface, and what Millrace has for each class and method."""
