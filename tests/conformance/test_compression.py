"""Test that librdkafka's compressed batches are read here, and that it reads ours.

Real Kafka decompresses what is produced to it, so its answer says that the Java code reads ours,
too.
"""

from __future__ import annotations

import struct

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from crc32c import crc32c

from coordinator.errors import Code
from coordinator.log.batch import HEADER_BYTES
from coordinator.log.batch import iterate_batches as parsed
from coordinator.log.compression import CompressionType, compress_records
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.calls import fetch, produce
from tests.conformance.wire import Client

# More than one block of snappy (32 KiB) and of lz4 (64 KiB); some of it doesn't get any smaller.
VALUES = [bytes((i * j * j) % 251 for j in range(300)) * 3 + b"%d" % i for i in range(100)]


def compressed_here(codec: CompressionType) -> bytes:
    data = bytearray(batches.encode(*VALUES))
    data[HEADER_BYTES:] = compress_records(codec, bytes(data[HEADER_BYTES:]))
    data[22] |= codec
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


@pytest.mark.parametrize("codec", list(CompressionType)[1:])
def test_each_codec_is_read_and_written_as_clients_do_it(
    broker: Broker, client: Client, topic: str, group: str, codec: CompressionType
) -> None:
    address = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer({**address, "compression.type": codec.name.lower(), "linger.ms": 500})
    for value in VALUES:
        producer.produce(topic, key=b"key", value=value, headers=[("origin", b"here")])
    assert producer.flush(20) == 0

    found = list(parsed(fetch(client, topic, 0).records))
    assert {batch.attributes & 7 for batch in found} == {codec}
    records = [record for batch in found for record in batch.iterate_records()]
    assert [record.value for record in records] == VALUES
    assert [record.offset for record in records] == list(range(100))
    assert {record.key for record in records} == {b"key"}
    assert {record.headers for record in records} == {(("origin", b"here"),)}

    assert produce(client, topic, compressed_here(codec)).error_code == Code.NONE
    consumer = Consumer({**address, "group.id": group, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 100)])
        assert [each.value() for each in consumer.consume(100, timeout=20)] == VALUES
    finally:
        consumer.close()
