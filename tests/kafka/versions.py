"""Name the versions of Apache Kafka that tests run against.

`--broker kafka` is the yardstick, as are Kafka's clients and tools, and Kafka Streams.
"""

from __future__ import annotations

YARDSTICK = "4.4.0"
VERSIONS = ("2.8.2", "3.6.2", "3.9.0", "4.0.0", "4.1.1", "4.2.0", "4.3.0", YARDSTICK)
"""Those that `make versions` runs applications on."""
