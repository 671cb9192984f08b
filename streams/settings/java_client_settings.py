"""Sort the settings of Java's clients, as a `.properties` file of Kafka Streams has them.

Kafka Streams hands a name without a prefix to the clients that know it. Some of these settings are
in force anyway, some have another name in librdkafka, and some have no counterpart there.
"""

from __future__ import annotations

_CONSUMERS = (
    "check.crcs",
    "enable.auto.commit",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.instance.id",
    "isolation.level",
    "max.partition.fetch.bytes",
)
_PRODUCERS = (
    "acks",
    "batch.size",
    "compression.type",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.class",
    "partitioner.ignore.keys",
    "retries",
)
CLIENTS_OF_JAVA_SETTINGS = dict.fromkeys(_CONSUMERS, "consumer") | dict.fromkeys(
    _PRODUCERS, "producer"
)
"""The settings of clients that Kafka Streams takes without a prefix: the setting they go to."""
LIBRDKAFKA_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "max.request.size": "message.max.bytes",
}
"""What librdkafka calls settings of Java's clients."""
_VALUES_IN_FORCE = {
    "acks": ("all", "-1"),
    "enable.auto.commit": ("false",),
    "enable.idempotence": ("true",),
    "isolation.level": ("read_committed",),
}
WITHOUT_COUNTERPART = {
    "auto.include.jmx.reporter": "metrics are scraped from metrics_port",
    "buffer.memory": "set queue.buffering.max.kbytes in producer={...}",
    "default.api.timeout.ms": "request_timeout_ms is for every call",
    "interceptor.classes": "librdkafka has no interceptors: processor_wrapper sees the records",
    "max.block.ms": "a thread waits for room in a full queue, and task_timeout_ms ends it",
    "partition.assignment.strategy": "task_assignor=... assigns the tasks",
    "partitioner.adaptive.partitioning.enable": "records of a key must meet in one partition",
    "partitioner.class": "give the function to a step: to(topic, partitioner=...)",
    "partitioner.ignore.keys": "records of a key must meet in one partition",
}
"""The settings of Java's clients that no client here has: the reason, or the other way."""


def is_in_force(setting: str, value: str) -> bool:
    """Return whether a client's setting has this value in any case, so that it may be said."""
    return value.strip().lower() in _VALUES_IN_FORCE.get(setting, ())
