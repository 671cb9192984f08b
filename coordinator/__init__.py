"""An embedded broker that speaks the Kafka protocol."""
