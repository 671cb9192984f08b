"""Test that files of real Kafka's internal topics are loaded here, and ours by real Kafka.

One journey, made once: real Kafka is filled, and its files go to a broker of ours; that one works
with them, and its files go back. The cases look at what each answered. What ours doesn't
understand (share groups) has to come back, too.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import brokers
from tests.brokers import Broker, EmbeddedProcess
from tests.conformance.producers import Producer
from tests.conformance.transactions import describe
from tests.conformance.wire import Client
from tests.kafka.server import RealKafka, missing
from tests.upgrade.answers import Answers
from tests.upgrade.moving import (
    DIRECTORIES,
    PARTITIONS,
    list_topics,
    log_of,
    move_internal_topics,
    topic_ids,
)
from tests.upgrade.populating import (
    CARRIED_OUT,
    CONVERTED,
    FOREIGN,
    MIXED,
    MODERN,
    OF_CLASSIC,
    OF_STREAMS,
    PLAIN,
    SETTINGS,
    STREAMS,
    TOPIC,
    TOPICS,
    TRANSACTION_IDS,
    carried_out,
    commit,
    connect,
    heartbeat,
    make_topics,
    offset,
    open_transactions,
    populate,
    prepare,
    said,
)

PATIENT = {
    **SETTINGS,
    "group.consumer.session.timeout.ms": "60000",
    "group.streams.session.timeout.ms": "60000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
BEATING = ("modern-regex", "modern-static")  # each of one member


@dataclass
class Journey:
    """Holds what each broker said, in the order of the journey; PREPARED are looked at apart."""

    kafka_before: Answers
    ours: Answers
    ours_log: str
    kafka_after: Answers
    ours_born: Answers
    kafka_born: Answers
    carried_out: list[dict[str, tuple[str, int]]]  # by each broker that found it decided
    compacted: dict[
        str, list[int]
    ]  # gaps in the offsets of the logs that went on, by who made them


def gaps(data: Path) -> list[int]:
    """Return how many offsets are missing in each partition of `__consumer_offsets`."""
    found = []
    for directory in DIRECTORIES[:PARTITIONS]:
        log = log_of(data / directory)
        found.append(log[-1].last_offset + 1 - sum(batch.record_count for batch in log))
    return found


@pytest.fixture(scope="module")
def journey() -> Iterator[Journey]:
    reason = missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    with ExitStack() as open_now:
        kafka, ours, born = (
            RealKafka(PATIENT),
            EmbeddedProcess(PATIENT),
            EmbeddedProcess(PATIENT),
        )
        for each in (kafka, ours, born):
            open_now.callback(each.close)
        try:
            yield travel(kafka, ours, born)
        except BaseException:
            print(kafka.log_tail(), ours.log_tail(), born.log_tail(), sep="\n\n")
            raise


def travel(kafka: RealKafka, ours: EmbeddedProcess, born: EmbeddedProcess) -> Journey:
    everything = (*PLAIN, *MODERN, MIXED, STREAMS, *CONVERTED, *FOREIGN)
    kafka.start()
    make_topics(kafka)
    populate(kafka, kinds=("consumer", "mixed", "share", STREAMS))
    kafka.restart()  # the batches from here on are of another leader epoch
    with connect(kafka) as client:
        open_transactions(client)
    kafka_before = said(kafka, everything)
    kafka.stop()
    compacted = {"kafka": gaps(kafka.data_dir)}

    for each in (ours, born):  # each has Kafka's topics, under Kafka's ids
        each.start()
        each.stop()
        ids = topic_ids(kafka.data_dir, TOPICS)
        list_topics(each.data_dir, {name: (ids[name], TOPICS[name]) for name in TOPICS})
    for name, partitions in TOPICS.items():
        for index in range(partitions):
            directory = f"{name}-{index}"
            shutil.copytree(kafka.data_dir / directory, ours.data_dir / directory)
    move_internal_topics(kafka.data_dir, ours.data_dir)
    prepare(ours.data_dir)
    ours.start()
    outcomes = [carried_out(ours)]
    ours_answers = said(ours, (*PLAIN, *MODERN, MIXED, STREAMS, *CONVERTED))
    work(ours, ours_answers)
    ours.stop()

    move_internal_topics(ours.data_dir, kafka.data_dir)
    kafka.restart()
    kafka_after = said(kafka, everything)
    outcomes.append(carried_out(kafka))
    with connect(kafka) as client:
        beat(client, kafka_after)
    kafka.stop()

    born.start()
    populate(born, kinds=("consumer", STREAMS))
    with connect(born) as client:
        open_transactions(client)
    ours_born = said(born, (*PLAIN, *MODERN, STREAMS, *CONVERTED))
    born.stop()
    compacted["ours"] = gaps(born.data_dir)
    move_internal_topics(born.data_dir, kafka.data_dir, suffixes=(".log",))
    prepare(kafka.data_dir)
    kafka.restart()
    outcomes.append(carried_out(kafka))
    kafka_born = said(kafka, (*PLAIN, *MODERN, STREAMS, *CONVERTED))
    with connect(kafka) as client:
        beat(client, kafka_born)
    return Journey(
        kafka_before,
        ours_answers,
        ours.log_since(0),
        kafka_after,
        ours_born,
        kafka_born,
        outcomes,
        compacted,
    )


def work(broker: Broker, groups: Answers) -> None:
    """Work with these groups and transactions as clients of Kafka go on, beside a new client."""
    with connect(broker) as client:
        taken = {describe(client, name).producer_id for name in TRANSACTION_IDS}
        assert Producer.init(client, "t-new").producer_id not in taken
        beat(client, groups)
        found = describe(client, "t-ongoing")
        Producer(client, "t-ongoing", found.producer_id, found.epoch).commit()
        commit(client, "offsets-only", TOPIC, [offset(2, 31)])


def beat(client: Client, groups: Answers) -> None:
    """Send heartbeats of consumer groups' members with what they have.

    Kafka and this broker hash a group's topics each in its own way, so that the first heartbeat may
    cost an epoch.
    """
    for name in BEATING:
        (member,) = groups.described[name]["members"]
        before = epoch = member["member_epoch"]
        for _ in range(3):
            answer = heartbeat(client, name, member["member_id"], epoch)
            assert answer.assignment is None, answer
            epoch = answer.member_epoch
        assert epoch - before in (0, 1)


def same_for(names: Iterable[str], one: Answers, other: Answers) -> None:
    """Check that both say the same of these groups, and that each says something."""
    for name in names:
        assert one.listed[name] == other.listed[name]
        assert one.described[name] == other.described[name]
        assert one.offsets.get(name) == other.offsets.get(name)
        assert one.stable_offsets.get(name) == other.stable_offsets.get(name)


GROUPS_OF_EITHER = [name for name in PLAIN if name not in ("to-commit", "to-abort")]


def test_kafka_s_classic_groups_and_offsets_are_the_same_here(journey: Journey) -> None:
    same_for(GROUPS_OF_EITHER, journey.kafka_before, journey.ours)
    assert journey.ours.listed["classic-stable"] == ("classic", "Stable", "consumer")
    assert len(journey.ours.described["classic-stable"]["members"]) == 2


def test_kafka_s_transactions_are_the_same_here(journey: Journey) -> None:
    assert journey.ours.transactions == journey.kafka_before.transactions
    states = {name: each["transaction_state"] for name, each in journey.ours.transactions.items()}
    assert states == {
        "t-empty": "Empty",
        "t-committed": "CompleteCommit",
        "t-aborted": "CompleteAbort",
        "t-ongoing": "Ongoing",
    }


def test_what_is_of_an_unknown_kind_is_reported_here_and_comes_back_to_kafka(
    journey: Journey,
) -> None:
    for kind in (10, 11):  # of share groups: member and group
        assert f"records of type {kind}: 1, the first at offset" in journey.ours_log
    same_for(FOREIGN, journey.kafka_before, journey.kafka_after)
    assert len(journey.kafka_after.described["share"]["members"]) == 1


def test_a_streams_group_is_the_same_here_and_on_kafka(journey: Journey) -> None:
    same_for([STREAMS], journey.kafka_before, journey.ours)
    same_for([STREAMS], journey.kafka_before, journey.kafka_after)
    same_for([STREAMS], journey.ours_born, journey.kafka_born)
    for answers in (journey.ours, journey.kafka_born):
        assert answers.listed[STREAMS] == ("streams", "Reconciling", "streams")
        members = answers.described[STREAMS]["members"]
        assert {each["instance_id"] for each in members} == {"i-1", None}
        tasks = [each["assignment"]["active_tasks"] for each in members]
        assert sum(len(ids["partitions"]) for held in tasks for ids in held) == 12


def test_a_group_that_has_changed_its_protocol_is_the_same_here_and_on_kafka(
    journey: Journey,
) -> None:
    same_for(CONVERTED, journey.kafka_before, journey.ours)
    same_for(CONVERTED, journey.kafka_before, journey.kafka_after)
    for answers in (journey.ours, journey.ours_born, journey.kafka_born):
        assert answers.listed[OF_CLASSIC] == ("streams", "Stable", "streams")
        assert answers.listed[OF_STREAMS][0] == "classic"
        for name in CONVERTED:
            [topic] = answers.offsets[name]["topics"]
            assert [each["committed_offset"] for each in topic["partitions"]] == [
                {OF_CLASSIC: 81, OF_STREAMS: 82}[name]
            ]


def test_kafka_s_consumer_groups_are_the_same_here_and_come_back(journey: Journey) -> None:
    same_for((*MODERN, MIXED), journey.kafka_before, journey.ours)
    assert journey.ours.listed["modern"] == ("consumer", "Reconciling", "consumer")
    still = [name for name in (*MODERN, MIXED) if name not in BEATING]
    same_for(still, journey.kafka_before, journey.kafka_after)
    for name in BEATING:
        (before,) = journey.kafka_before.described[name]["members"]
        (after,) = journey.kafka_after.described[name]["members"]
        assert after == {**before, "member_epoch": before["member_epoch"] + 1}


def test_what_was_done_here_is_so_on_kafka(journey: Journey) -> None:
    unchanged = [name for name in GROUPS_OF_EITHER if name not in ("pending", "offsets-only")]
    same_for(unchanged, journey.kafka_before, journey.kafka_after)
    assert offsets_of(journey.kafka_before, "pending") == {0: (-1, "")}
    assert offsets_of(journey.kafka_after, "pending") == {0: (51, "after")}
    assert offsets_of(journey.kafka_after, "offsets-only") == {1: (30, "wörter"), 2: (31, "")}
    transactions = journey.kafka_after.transactions
    assert transactions["t-ongoing"]["transaction_state"] == "CompleteCommit"
    for name in ("t-empty", "t-committed", "t-aborted"):
        assert transactions[name] == journey.kafka_before.transactions[name]


def test_what_was_born_here_is_the_same_on_kafka(journey: Journey) -> None:
    same_for([*GROUPS_OF_EITHER, *MODERN], journey.ours_born, journey.kafka_born)
    assert journey.kafka_born.transactions == journey.ours_born.transactions
    assert journey.kafka_born.listed["classic-stable"] == ("classic", "Stable", "consumer")


def test_what_was_decided_is_carried_out_by_whoever_loads_it(journey: Journey) -> None:
    assert journey.carried_out == [CARRIED_OUT] * 3


def test_the_logs_that_went_on_had_been_compacted(journey: Journey) -> None:
    for found in journey.compacted.values():
        assert len(found) == PARTITIONS
        assert all(missing_offsets > 100 for missing_offsets in found), journey.compacted


def offsets_of(answers: Answers, group: str) -> dict[int, tuple[int, str]]:
    """Return a stable fetch's offsets and metadata of `words` by partition."""
    (topic,) = answers.stable_offsets[group]["topics"]
    return {
        each["partition_index"]: (each["committed_offset"], each["metadata"])
        for each in topic["partitions"]
    }
