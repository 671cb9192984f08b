"""Clients of a simulation: they do what librdkafka and the Java client do, as coroutines."""
