"""Translate the settings of Java's clients: which of ours get each, or why there is none.

Kafka Streams passes a setting without a prefix on to those of its clients that have it, and so does
a `.properties` file here; one with a prefix goes over it. Source: ConsumerConfig and ProducerConfig
of Kafka 4.4, and StreamsConfig.clientProps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

LibrdkafkaName: TypeAlias = str
LibrdkafkaValue: TypeAlias = str

_CONSUMER, _PRODUCER, _BOTH = ("consumer",), ("producer",), ("consumer", "producer")
PASSED_ON: Mapping[str, tuple[str, ...]] = {
    "batch.size": _PRODUCER,
    "check.crcs": _CONSUMER,
    "client.dns.lookup": _BOTH,
    "compression.type": _PRODUCER,
    "connections.max.idle.ms": _BOTH,
    "delivery.timeout.ms": _PRODUCER,
    "fetch.max.bytes": _CONSUMER,
    "fetch.max.wait.ms": _CONSUMER,
    "fetch.min.bytes": _CONSUMER,
    "linger.ms": _PRODUCER,
    "max.in.flight.requests.per.connection": _PRODUCER,
    "max.partition.fetch.bytes": _CONSUMER,
    "max.request.size": _PRODUCER,
    "metadata.recovery.rebootstrap.trigger.ms": _BOTH,
    "metadata.recovery.strategy": _BOTH,
    "receive.buffer.bytes": _BOTH,
    "reconnect.backoff.max.ms": _BOTH,
    "reconnect.backoff.ms": _BOTH,
    "retries": _PRODUCER,
    "retry.backoff.max.ms": _PRODUCER,
    "retry.backoff.ms": _PRODUCER,
    "send.buffer.bytes": _BOTH,
    "socket.connection.setup.timeout.ms": _BOTH,
}
"""The settings that librdkafka has too: the dictionaries that get them without a prefix."""

_NO_COUNTERPART = "librdkafka has nothing of the kind"
_SERDES = "serdes are said where they are needed: key= and value= of stream, table and to"
_PARTITIONER = "records of a key must meet in one partition, by Kafka's own hash"
_LEVEL = "librdkafka has one for all types: producer.compression.level"
REFUSED_OF_CLIENTS: Mapping[str, str] = {
    "allow.auto.create.topics": "inputs must exist: create-topics makes them",
    "auto.include.jmx.reporter": "metrics are scraped from metrics_port",
    "auto.commit.interval.ms": "offsets are committed with the transaction: set commit.interval.ms",
    "bootstrap.resolve.timeout.ms": _NO_COUNTERPART,
    "buffer.memory": "set queue.buffering.max.kbytes in producer={...}, which bounds what waits to "
    "be sent",
    "compression.gzip.level": _LEVEL,
    "compression.lz4.level": _LEVEL,
    "compression.zstd.level": _LEVEL,
    "default.api.timeout.ms": "set request.timeout.ms for one call, and task.timeout.ms for how "
    "long calls are tried again",
    "exclude.internal.topics": _NO_COUNTERPART,
    "group.remote.assignor": "set group.protocol",
    "interceptor.classes": "librdkafka has no interceptors: processor_wrapper sees the records",
    "key.deserializer": _SERDES,
    "key.serializer": _SERDES,
    "max.block.ms": "a thread waits while the producer's queue is full, and task.timeout.ms says "
    "for how long nothing may be committed",
    "metadata.max.idle.ms": _NO_COUNTERPART,
    "partition.assignment.strategy": "tasks are assigned as group.protocol says, or by "
    "App(..., task_assignor=...)",
    "partitioner.adaptive.partitioning.enable": _PARTITIONER,
    "partitioner.availability.timeout.ms": _PARTITIONER,
    "partitioner.class": "give the function to a step: to(topic, partitioner=...)",
    "partitioner.ignore.keys": _PARTITIONER,
    "partitioner.rack.aware": _PARTITIONER,
    "socket.connection.setup.timeout.max.ms": _NO_COUNTERPART,
    "transaction.two.phase.commit.enable": "transactions are committed by the runtime",
    "value.deserializer": _SERDES,
    "value.serializer": _SERDES,
}
"""The settings of Java's clients that librdkafka has not: the reason, or the other way."""

DEFAULTS_OF_CLIENTS: Mapping[str, tuple[str, ...]] = {
    "acks": ("all", "-1"),
    "allow.auto.create.topics": ("false",),
    "bootstrap.resolve.timeout.ms": ("0",),
    "buffer.memory": ("33554432",),
    "default.api.timeout.ms": ("60000",),
    "delivery.timeout.ms": ("120000",),
    "enable.auto.commit": ("false",),
    "enable.idempotence": ("true",),
    "exclude.internal.topics": ("true",),
    "interceptor.classes": ("",),
    "isolation.level": ("read_committed",),
    "max.block.ms": ("60000",),
    "metadata.max.idle.ms": ("300000",),
    "partitioner.adaptive.partitioning.enable": ("true",),
    "partitioner.availability.timeout.ms": ("0",),
    "partitioner.class": ("",),
    "partitioner.ignore.keys": ("false",),
    "partitioner.rack.aware": ("false",),
    "socket.connection.setup.timeout.max.ms": ("30000",),
    "transaction.two.phase.commit.enable": ("false",),
}
"""The values of clients' settings that have no effect here, as if they were left out: Java's
defaults, and what the guarantee sets anyway."""

DELIVERY_TIMEOUT = "delivery.timeout.ms"
_TRANSACTION_TIMEOUT = "transaction.timeout.ms"

_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "max.request.size": "message.max.bytes",
}
"""What librdkafka calls settings of Java's clients."""
_ZERO_FOR_NONE = ("connections.max.idle.ms", "receive.buffer.bytes", "send.buffer.bytes")
"""The settings for which Java says -1 where librdkafka says 0."""


def translate_client_setting(name: str, value: str) -> tuple[LibrdkafkaName, LibrdkafkaValue]:
    """Return the name and the value that a setting of Java's clients has in librdkafka."""
    return _NAMES.get(name, name), "0" if name in _ZERO_FOR_NONE and value == "-1" else value


def is_default_delivery_timeout_effective(properties: Mapping[str, str]) -> bool:
    """Return whether Java's default time-out would bound deliveries under a file's settings.

    A transaction that the file makes as long as that would bound deliveries by its own time, and
    without transactions librdkafka's default does, which is another one.
    """
    java_ms = int(*DEFAULTS_OF_CLIENTS[DELIVERY_TIMEOUT])
    timeouts_ms = [
        int(value)
        for name, value in properties.items()
        if name.endswith(_TRANSACTION_TIMEOUT) and value.isdecimal()
    ]
    is_at_least_once = properties.get("processing.guarantee") == "at_least_once"
    return is_at_least_once or any(each >= java_ms for each in timeouts_ms)
