"""Test the word count on Apache Kafka in a container, as a user of Millrace would test it."""
