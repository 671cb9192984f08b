"""Provide clients as coroutines that behave as librdkafka and the Java client do."""
