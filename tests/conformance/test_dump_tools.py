"""Test that Kafka's DumpLogSegments reads our batches, indexes and coordinators' records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer as ConfluentProducer

from tests import brokers
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.calls import commit_offset, create_topic, produce
from tests.conformance.members import Member, alone
from tests.conformance.producers import Producer
from tests.conformance.wire import Client
from tests.kafka.server import java, missing
from tests.processes import UNREACHED_MS, wait_until

LATER_MS = batches.TIMESTAMP_MS + 1_800_000
# Every kind of line that the tool prints when all is well.
WELL = re.compile(
    r"Dumping .*|Log starting offset: \d+|baseOffset: .* isvalid: true|\| offset: .*"
    r"|offset: \d+ position: \d+|timestamp: -?\d+ offset: \d+"
    r"|version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+ lastStableOffset: \d+"
    r"|producerId: .* lastTimestamp: .*|.* passed sanity check\.|"
)
# What it says, beside that, of the gaps that a compaction leaves.
GAPS = re.compile(r"Non-consecutive offsets in .*| *-?\d+ is followed by \d+")
PAYLOAD = re.compile(r"\| offset: \d+ .* key: (\{.*\}) payload: (\{.*\}|.*)$")


@pytest.fixture
def dump(broker: Broker) -> Callable[..., list[str]]:
    """Return a function that runs DumpLogSegments and fails at any complaint of it."""
    if broker.kind == "address":
        pytest.skip("the files of a broker that is not ours are not at hand")
    reason = missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)

    def run(files: Iterable[Path], *options: str) -> list[str]:
        names = ",".join(str(each) for each in sorted(files))
        printed = java("org.apache.kafka.tools.DumpLogSegments", *options, "--files", names)
        lines = printed.splitlines()
        assert [each for each in lines if not (WELL.fullmatch(each) or GAPS.fullmatch(each))] == []
        return lines

    return run


def decoded(lines: Iterable[str]) -> list[tuple[dict[str, Any], Any]]:
    """Return key and value of each record that the tool could decode."""
    found = [match for match in map(PAYLOAD.match, lines) if match]
    return [
        (json.loads(each[1]), json.loads(each[2]) if each[2].startswith("{") else None)
        for each in found
    ]


def test_a_complete_segment_and_its_indexes_are_read_without_complaint(
    broker: Broker,
    client: Client,
    unique: Callable[[str], str],
    transactional_id: str,
    dump: Callable[..., list[str]],
) -> None:
    topic = unique("topic")
    create_topic(client, topic, configs={"segment.bytes": str(1 << 20)})
    produce(client, topic, batches.encode((b"key", b"plain"), (None, None)))
    compressing = ConfluentProducer(
        {"bootstrap.servers": broker.bootstrap_servers, "compression.type": "zstd"}
    )
    compressing.produce(topic, b"compressed" * 100)
    assert compressing.flush(20) == 0
    producer = Producer.init(client, transactional_id)
    for finish in (producer.commit, producer.abort):
        producer.add(topic)
        producer.write(topic, b"in a transaction")
        finish()
    for _ in range(3):  # the third begins a new segment, and the first one's indexes are final
        produce(client, topic, batches.encode(b"x" * 500_000))
    suffixes = (".log", ".index", ".timeindex", ".txnindex")
    complete = [broker.data_dir / f"{topic}-0" / f"{0:020}{suffix}" for suffix in suffixes]
    assert (broker.data_dir / f"{topic}-0" / f"{9:020}.log").exists()
    snapshot = broker.data_dir / f"{topic}-0" / f"{9:020}.snapshot"
    wait_until(snapshot.exists, what=f"no {snapshot}")
    (known,) = (
        each for each in dump([snapshot]) if each.startswith(f"producerId: {producer.producer_id}")
    )
    assert "currentTxnFirstOffset: OptionalLong.empty" in known
    # Of the producer, its epoch and its last batch: the one that was aborted.
    assert f"producerEpoch: {producer.epoch} " in known
    assert "lastOffset: 5 offsetDelta: 0" in known
    dump(complete[1:3], "--index-sanity-check")
    lines = dump(complete, "--print-data-log", "--deep-iteration")
    text = "\n".join(lines)
    assert "payload: plain" in text
    assert "compresscodec: zstd" in text
    assert "payload: compressed" in text
    assert "endTxnMarker: COMMIT" in text
    assert "endTxnMarker: ABORT" in text
    assert sum(each.startswith("| offset: ") for each in lines) == 9
    (aborted,) = (each for each in lines if each.startswith("version: 0 producerId"))
    assert f"producerId: {producer.producer_id} firstOffset: 5 lastOffset: 6" in aborted


def test_cleaned_segments_and_their_indexes_are_read_without_complaint(
    broker: Broker, client: Client, unique: Callable[[str], str], dump: Callable[..., list[str]]
) -> None:
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    sparse = {"segment.ms": "600000", "index.interval.bytes": "100"}
    last = {number % 300: number for number in range(1_000)}
    expected = [
        (str(number), str(key), None if number % 10 == 0 else str(number))
        for key, number in sorted(last.items(), key=lambda each: each[1])
    ]
    topics = {codec: unique(codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")}
    for codec, topic in topics.items():
        create_topic(client, topic, configs={**compacted, **sparse})
        producer = ConfluentProducer(
            {"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}
        )
        for number in range(1_000):
            value = None if number % 10 == 0 else f"{number} " + "some text " * 20
            producer.produce(topic, key=b"%d" % (number % 300), value=value)
            if number % 100 == 99:
                assert producer.flush(20) == 0
        produce(client, topic, batches.encode((b"new segment", b""), timestamps_ms=[LATER_MS]))
    checkpoint = broker.data_dir / "cleaner-offset-checkpoint"
    wait_until(
        lambda: (
            checkpoint.exists()
            and {f"{topic} 0 1000" for topic in topics.values()}
            <= set(checkpoint.read_text().splitlines())
        ),
        what="the first segments are not cleaned",
    )
    logs = [broker.data_dir / f"{topic}-0" / f"{0:020}.log" for topic in topics.values()]
    indexes = [log.with_suffix(each) for log in logs for each in (".index", ".timeindex")]
    text = "\n".join(dump([*logs, *indexes], "--print-data-log", "--deep-iteration"))
    pattern = re.compile(r"^\| offset: (\d+) .* key: (\d+)(?: payload: (\d+) .*)?$", re.MULTILINE)
    for codec, topic in topics.items():
        _, _, own = text.partition(f"/{topic}-0/{0:020}.log")
        own, _, _ = own.partition("Dumping ")
        assert f"compresscodec: {codec}" in own
        assert [match.groups() for match in pattern.finditer(own)] == expected, codec


def test_the_transaction_coordinator_s_records_are_decoded(
    broker: Broker,
    client: Client,
    topic: str,
    transactional_id: str,
    dump: Callable[..., list[str]],
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    producer.commit()
    files = broker.data_dir.glob("__transaction_state-*/*.log")
    records = decoded(dump(files, "--transaction-log-decoder"))
    mine = [
        value["data"]
        for key, value in records
        if key == {"type": "0", "data": {"transactionalId": transactional_id}}
    ]
    states = [each["transactionStatus"] for each in mine]
    assert states == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert {each["producerId"] for each in mine} == {producer.producer_id}
    partitions = [{"topic": topic, "partitionIds": [0]}]
    assert mine[1]["transactionPartitions"] == mine[2]["transactionPartitions"] == partitions
    assert mine[0]["transactionTimeoutMs"] == UNREACHED_MS


def test_the_group_coordinator_s_records_are_decoded(
    broker: Broker,
    client: Client,
    topic: str,
    group: str,
    transactional_id: str,
    dump: Callable[..., list[str]],
) -> None:
    member = alone(Member(client, group), assignment=b"all of it")
    who: dict[str, Any] = {"generation": member.generation, "member_id": member.member_id}
    producer = Producer.init(client, transactional_id)
    assert producer.add_offsets(group) == 0
    assert producer.stage_offset(group, topic, 7, **who, metadata="staged") == 0
    producer.commit()
    assert commit_offset(client, group, topic, 8, **who, metadata="plain") == 0
    files = broker.data_dir.glob("__consumer_offsets-*/*.log")
    records = decoded(dump(files, "--offsets-decoder"))
    offset_key = {"type": "1", "data": {"group": group, "topic": topic, "partition": 0}}
    offsets = [value["data"] for key, value in records if key == offset_key]
    assert [(each["offset"], each["metadata"]) for each in offsets] == [(7, "staged"), (8, "plain")]
    group_key = {"type": "2", "data": {"group": group}}
    *_, last = (value["data"] for key, value in records if key == group_key)
    assert (last["generation"], last["protocol"], last["protocolType"]) == (1, "range", "consumer")
    assert last["leader"] == member.member_id
    (listed,) = last["members"]
    assert listed["memberId"] == member.member_id
    assert listed["clientId"] == "conformance"
