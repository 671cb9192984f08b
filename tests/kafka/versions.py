"""Name the versions of Apache Kafka that tests run against.

`--broker kafka` is the yardstick, as are Kafka's clients and tools, and Kafka Streams.
"""

from __future__ import annotations

YARDSTICK = "4.4.0"
