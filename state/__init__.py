"""Transactional state stores, their changelogs and recovery. Knows no Kafka client."""
