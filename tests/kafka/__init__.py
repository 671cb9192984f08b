"""Run real Apache Kafka as a process: the truth that the embedded broker is held against."""
