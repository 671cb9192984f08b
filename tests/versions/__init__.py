"""Run one application's suite on nodes of several versions of Kafka, and table what they can do."""
