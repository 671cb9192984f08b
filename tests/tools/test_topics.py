"""Test kafka-topics and others for topics: directories, elections, offsets, deleted records."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from tests.tools.shell import Pair

Same = Callable[[str], str]
TOPICS = "kafka-topics --bootstrap-server {}"


def test_a_topic_is_created_described_altered_and_deleted(same: Same) -> None:
    create = f"{TOPICS} --create --topic life"
    config = "--config retention.ms=1000 --config cleanup.policy=compact"
    created = same(f"{create} --partitions 3 --replication-factor 1 {config}")
    assert created == "Created topic life.\n"
    assert "already exists" in same(create)
    assert same(f"{create} --if-not-exists") == ""
    described = same(f"{TOPICS} --describe --topic life")
    assert "PartitionCount: 3\tReplicationFactor: 1" in described
    assert "Partition: 2\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n" in described
    assert described == same(
        f"{TOPICS} --describe --topic life --partition-size-limit-per-response 2"
    )
    assert same(f"{TOPICS} --alter --topic life --partitions 5") == ""
    assert "2 would not be an increase" in same(f"{TOPICS} --alter --topic life --partitions 2")
    assert "PartitionCount: 5" in same(f"{TOPICS} --describe --topic life")
    assert "life\n" in same(f"{TOPICS} --list --exclude-internal")
    assert same(f"{TOPICS} --delete --topic life") == ""
    assert "life\n" not in same(f"{TOPICS} --list --exclude-internal")


def test_topics_with_something_set_are_told_apart_and_none_is_in_trouble(same: Same) -> None:
    same(f"{TOPICS} --create --topic plain")
    same(f"{TOPICS} --create --topic with-config --config segment.ms=60000")
    overrides = same(f"{TOPICS} --describe --topics-with-overrides --topic with-config")
    assert overrides.endswith("Configs: segment.ms=60000\n")
    for trouble in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
        of_one = same(f"{TOPICS} --describe --topic plain --{trouble}-partitions")
        assert ("Topic: plain" in of_one) == (trouble == "at-min-isr")


def test_a_topic_that_can_t_be_is_refused_in_kafka_s_words(same: Same) -> None:
    for wrong, why in (
        ("--topic none --partitions 0", "must be greater than 0"),
        ("--topic three --replication-factor 3", "only 1 broker(s) are registered"),
        ("--topic odd --config no.such=1", "Unknown topic config name: no.such"),
        ("--topic soon --config retention.ms=soon", "Not a number of type LONG"),
        ("--topic away --replica-assignment 1,2", "broker 2, but no such broker is registered"),
        ("--topic a/b", "is invalid"),
    ):
        assert why in same(f"{TOPICS} --create {wrong}"), wrong
    assert same(f"{TOPICS} --create --topic placed --replica-assignment 1,1") == (
        "Created topic placed.\n"
    )
    for action in ("--describe", "--delete", "--alter --partitions 9"):
        assert "does not exist as expected" in same(f"{TOPICS} {action} --topic nope")


def write(bootstrap_servers: str, topic: str, count: int) -> None:
    """Write records of one byte into partition 0, each a millisecond younger than the last."""
    begin_ms = time.time_ns() // 1_000_000
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, b"x", partition=0, timestamp=begin_ms + number)
    assert producer.flush(20) == 0


def test_offsets_are_told_and_records_deleted(pair: Pair, same: Same, tmp_path: Path) -> None:
    same(f"{TOPICS} --create --topic counted --partitions 2")
    for shell in (pair.ours, pair.kafkas):
        write(shell.bootstrap_servers, "counted", 5)
    offsets = "kafka-get-offsets --bootstrap-server {} --topic-partitions counted:0-2"
    assert same(offsets) == "counted:0:5\ncounted:1:0\n"
    asked = tmp_path / "offsets.json"
    partition = {"topic": "counted", "partition": 0, "offset": 3}
    asked.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    delete = f"kafka-delete-records --bootstrap-server {{}} --offset-json-file {asked}"
    assert "partition: counted-0\tlow_watermark: 3" in same(delete)
    assert same(f"{offsets} --time earliest") == "counted:0:3\ncounted:1:0\n"
    youngest = same("kafka-get-offsets --bootstrap-server {} --topic counted --time max-timestamp")
    assert youngest == "counted:0:4\n"
    nothing = same("kafka-get-offsets --bootstrap-server {} --topic nope")
    assert "Could not match any topic-partitions" in nothing


def test_directories_elections_and_reassignments_have_nothing_to_tell(same: Same) -> None:
    same(f"{TOPICS} --create --topic still")
    dirs = "kafka-log-dirs --bootstrap-server {} --describe --topic-list still --broker-list 1"
    assert '"partition":"still-0","size":0,"offsetLag":0,"isFuture":false' in same(dirs)
    elect = "kafka-leader-election --bootstrap-server {}"
    elected = same(f"{elect} --election-type preferred --topic still --partition 0")
    assert elected == "Valid replica already elected for partitions still-0\n"
    assert same(f"{elect} --election-type preferred --all-topic-partitions") == ""
    missing = same(f"{elect} --election-type unclean --topic still --partition 9")
    assert "No such partition as still-9" in missing
    reassign = "kafka-reassign-partitions --bootstrap-server {}"
    assert same(f"{reassign} --list") == "No partition reassignments found.\n"


def test_partitions_can_be_reassigned_to_where_they_are(same: Same, tmp_path: Path) -> None:
    same(f"{TOPICS} --create --topic stays")
    reassign = "kafka-reassign-partitions --bootstrap-server {}"
    for broker, why in ((1, "Successfully started partition reassignment"), (2, "Unknown broker")):
        plan = tmp_path / f"{broker}.json"
        partition = {"topic": "stays", "partition": 0, "replicas": [broker]}
        plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        assert why in same(f"{reassign} --execute --reassignment-json-file {plan}")
    verified = same(f"{reassign} --verify --reassignment-json-file {tmp_path / '1.json'}")
    assert "Reassignment of partition stays-0 is completed." in verified
