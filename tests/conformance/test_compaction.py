"""Test that compaction keeps the same records and markers at the same offsets as Kafka does.

Segments are begun by time here (`segment.ms` and the records' timestamps), because real Kafka takes
no segments of less than a megabyte; what is in the last one is not cleaned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from coordinator.errors import Code
from coordinator.log.batch import iterate_batches as parsed
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.batches import TIMESTAMP_MS
from tests.conformance.calls import READ_COMMITTED, READ_UNCOMMITTED, create_topic, fetch, produce
from tests.conformance.configs import DONE, SET, TOPIC, alter
from tests.conformance.producers import Producer
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import Reader

LATER_MS = TIMESTAMP_MS + 1_800_000
MEGABYTE = 1_048_576
SEGMENTS = 16
LONG_VALUE = bytes(4_000)

Pair = tuple[bytes | None, bytes | None]
Found = tuple[int, bytes | None, bytes | None]


@pytest.fixture
def compacted(client: Client, unique: Callable[[str], str]) -> Callable[..., str]:
    """Return a function that creates topics that are cleaned as soon as anything can be."""

    def make(**configs: str) -> str:
        name = unique("compacted")
        dotted = {each.replace("_", "."): value for each, value in configs.items()}
        settings = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0",
            "segment.ms": "1000",
        }
        create_topic(client, name, configs={**settings, **dotted})
        return name

    return make


def write(client: Client, topic: str, *pairs: Pair, **options: Any) -> None:
    answer = produce(client, topic, batches.encode(*pairs, **options))
    assert answer.error_code == Code.NONE, answer


def begin_segment(client: Client, topic: str, number: int = 0) -> None:
    write(client, topic, (b"last", b"%d" % number), timestamps_ms=[LATER_MS + 2_000 * number])


def transaction(producer: Producer, topic: str, *pairs: Pair, committed: bool) -> None:
    sequence = producer.sequences.get((topic, 0), 0)
    producer.sequences[topic, 0] = sequence + len(pairs)
    producer.add(topic)
    data = batches.encode(
        *pairs,
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        sequence=sequence,
        transactional=True,
    )
    answer = produce(producer.client, topic, data, transactional_id=producer.transactional_id)
    assert answer.error_code == Code.NONE, answer
    if committed:
        producer.commit()
    else:
        producer.abort()


def read(
    client: Client, topic: str, isolation: int = READ_UNCOMMITTED
) -> tuple[list[Found], list[tuple[int, str]]]:
    """Read a partition from the beginning; return records, and (offset, kind) of markers."""
    records: list[Found] = []
    markers: list[tuple[int, str]] = []
    offset = 0
    while True:
        answer = fetch(client, topic, offset, isolation=isolation)
        assert answer.error_code == Code.NONE, answer
        found = list(parsed(answer.records or b""))
        if not found:
            return records, markers
        index = sorted(answer.aborted_transactions or (), key=lambda each: each.first_offset)
        aborting: set[int] = set()
        for batch in found:
            assert batch.is_intact()
            offset = batch.last_offset + 1
            while index and index[0].first_offset <= batch.last_offset:
                aborting.add(index.pop(0).producer_id)
            if batch.is_control:
                if batch.record_count:
                    committed, _ = batch.decode_marker()
                    markers.append((batch.base_offset, "commit" if committed else "abort"))
                    aborting.discard(batch.producer_id)
            elif isolation == READ_UNCOMMITTED or batch.producer_id not in aborting:
                records += [(each.offset, each.key, each.value) for each in batch.iterate_records()]


def fill(client: Client, topic: str, transactional_id: str) -> None:
    """Write offsets 0 to 14, of which the last begins another segment."""
    producer = Producer.init(client, transactional_id)
    write(client, topic, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))  # 0 to 2
    transaction(producer, topic, (b"a", b"2"), (b"d", b"2"), committed=True)  # 3, 4; marker 5
    transaction(producer, topic, (b"b", b"9"), (b"e", b"9"), committed=False)  # 6, 7; marker 8
    write(client, topic, (b"c", None), (b"f", b"1"))  # 9, 10
    transaction(producer, topic, (b"f", b"2"), committed=True)  # 11; marker 12
    write(client, topic, (b"d", b"3"))  # 13
    begin_segment(client, topic)  # 14


CLEANED: list[Found] = [
    (1, b"b", b"1"),
    (3, b"a", b"2"),
    (9, b"c", None),
    (11, b"f", b"2"),
    (13, b"d", b"3"),
    (14, b"last", b"0"),
]


def test_the_last_record_of_each_key_stays_at_its_offset(
    client: Client, compacted: Callable[..., str], transactional_id: str
) -> None:
    topic = compacted()
    fill(client, topic, transactional_id)
    wait_until(
        lambda: read(client, topic)[0] == CLEANED,
        what=lambda: f"found {read(client, topic)}",
    )
    assert read(client, topic, READ_COMMITTED)[0] == CLEANED
    markers = read(client, topic)[1]
    assert markers == [(5, "commit"), (8, "abort"), (12, "commit")]


def test_tombstones_and_markers_of_nothing_go_after_their_retention(
    client: Client, compacted: Callable[..., str], transactional_id: str
) -> None:
    topic = compacted(delete_retention_ms="0")
    fill(client, topic, transactional_id)
    kept = [each for each in CLEANED if each[2] is not None and each[1] != b"last"]
    numbers = iter(range(1, 40))

    def has_settled() -> bool:
        """Append to the log, which else isn't cleaned again, and return whether it has settled."""
        begin_segment(client, topic, next(numbers))
        time.sleep(0.2)
        records, markers = read(client, topic)
        others = [each for each in records if each[1] != b"last"]
        return others == kept and markers == [(5, "commit"), (12, "commit")]

    wait_until(has_settled, what=lambda: f"found {read(client, topic)}")
    assert [each for each in read(client, topic, READ_COMMITTED)[0] if each[1] != b"last"] == kept


def test_what_is_behind_an_open_transaction_is_not_cleaned(
    client: Client,
    compacted: Callable[..., str],
    unique: Callable[[str], str],
) -> None:
    topic = compacted()
    write(client, topic, (b"a", b"1"))
    write(client, topic, (b"a", b"2"), timestamps_ms=[TIMESTAMP_MS + 2_000])
    producer = Producer.init(client, unique("open"))
    producer.add(topic)
    begin_segment(client, topic)  # 2
    data = batches.encode(
        (b"a", b"open"), producer_id=producer.producer_id, epoch=producer.epoch, sequence=0,
        transactional=True, timestamps_ms=[LATER_MS],
    )  # fmt: skip
    answer = produce(client, topic, data, transactional_id=producer.transactional_id)
    assert answer.error_code == Code.NONE
    begin_segment(client, topic, 1)
    begin_segment(client, topic, 2)
    wait_until(
        lambda: read(client, topic)[0][0][0] == 1,
        what=lambda: f"found {read(client, topic)}",
    )
    found = read(client, topic)[0]
    assert [each[0] for each in found] == [1, 2, 3, 4, 5]
    assert [each[0] for each in read(client, topic, READ_COMMITTED)[0]] == [1, 2]
    producer.abort()
    begin_segment(client, topic, 3)
    last = (5, 7)  # of the key `last`: in the closed segments, and in the active one
    wait_until(
        lambda: [each[0] for each in read(client, topic)[0]] == [1, *last],
        what=lambda: f"found {read(client, topic)}",
    )


def segment_sizes(logs: Path) -> list[int]:
    """Return the sizes of a log's segments, less those that the broker deletes meanwhile."""
    sizes = []
    for path in logs.glob("*.log"):
        with suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return sizes


def test_a_client_reads_past_segments_of_which_nothing_is_left(
    broker: Broker, client: Client, compacted: Callable[..., str]
) -> None:
    """Check an empty segment, as librdkafka stops after eleven responses without a record."""
    topic = compacted(
        cleanup_policy="delete", segment_bytes=str(MEGABYTE), segment_ms=str(7 * 86_400_000)
    )
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5}
    )
    for number in range(SEGMENTS * MEGABYTE // len(LONG_VALUE)):
        producer.produce(topic, LONG_VALUE, b"%d" % (number % 10), on_delivery=raise_error)
        producer.poll(0)
    assert producer.flush(HANG_LIMIT_S) == 0
    # All in one cleaning: segments that have become small are merged by the next.
    assert alter(client, TOPIC, topic, ("cleanup.policy", SET, "compact")) == DONE
    logs = broker.data_dir / f"{topic}-0"
    wait_until(
        lambda: sum(segment_sizes(logs)) < 4 * MEGABYTE,
        what=lambda: f"compaction of {sorted(segment_sizes(logs))}",
    )
    reader, keys = Reader(broker.bootstrap_servers, topic, 1), set[bytes]()

    def all_read() -> bool:
        keys.update(message.key() for message in reader.take())
        return len(keys) == 10

    try:
        wait_until(all_read, what=lambda: f"only {keys}")
    finally:
        reader.close()


def raise_error(error: KafkaError | None, _: Message) -> None:
    if error is not None:
        raise KafkaException(error)
