"""Test that the ledger has every committed record in exactly one entry, aborted ones in none.

With it any record is in a cut of the running application or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from streams.common.host import SystemHost
from streams.common.topic_partitions import Partition
from streams.ledger import LedgerTransaction, decode, ledger_topic
from streams.membership.connection import BrokerConnection
from streams.membership.producer_identity import UnknownTransactionalId, fetch_producer_identity
from streams.runtime.threads.commit import CommitStep
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


def read(
    topics: Topics, topic: str, isolation: str, partitions: int = PARTITIONS
) -> Iterator[tuple[Partition, int, bytes]]:
    """Yield the place and value of every record of a topic that a reader of this isolation sees."""
    for message in records(topics.servers, topic, partitions, isolation=isolation):
        yield Partition(topic, message.partition()), message.offset(), message.value()


class LedgerAndTopics:
    """Holds the ledger of an application and what it is about, read when nothing runs any more."""

    def __init__(self, topics: Topics) -> None:
        app = topics.application
        self.repartition = f"{app}-counts-repartition"
        self.topics = (topics.target, self.repartition, f"{app}-counts-changelog")
        ledger = read(topics, ledger_topic(app), "read_committed", 1)
        self.entries: list[LedgerTransaction] = [decode(value) for _, _, value in ledger]
        self.committed = self._offsets(topics, "read_committed")
        self.aborted = self._offsets(topics, "read_uncommitted") - self.committed
        self.writer: dict[tuple[Partition, int], list[LedgerTransaction]] = {}
        for entry in self.entries:
            for partition, runs in entry.written.items():
                for first, last in runs:
                    for offset in range(first, last + 1):
                        self.writer.setdefault((partition, offset), []).append(entry)

    def _offsets(self, topics: Topics, isolation: str) -> set[tuple[Partition, int]]:
        return {
            (partition, offset)
            for topic in self.topics
            for partition, offset, _ in read(topics, topic, isolation)
        }


def cut_of(topics: Topics) -> dict[Partition, int] | None:
    """Return the application's committed offsets at one moment.

    None while a transaction is about to change some.
    """
    admin = AdminClient({"bootstrap.servers": topics.servers})
    names = (topics.source, f"{topics.application}-counts-repartition")
    wanted = [TopicPartition(name, number) for name in names for number in range(PARTITIONS)]
    asked = ConsumerGroupTopicPartitions(topics.application, wanted)
    (answer,) = admin.list_consumer_group_offsets([asked], require_stable=True).values()
    try:
        found = answer.result(HANG_LIMIT_S).topic_partitions
    except KafkaException:
        return None
    if any(each.error is not None for each in found):
        return None
    return {Partition(each.topic, each.partition): max(each.offset, 0) for each in found}


def assert_exact(read_back: LedgerAndTopics) -> None:
    assert not read_back.committed - read_back.writer.keys(), "committed, and in no entry"
    assert not read_back.writer.keys() - read_back.committed, "in an entry, and not committed"
    assert {len(writers) for writers in read_back.writer.values()} == {1}
    assert not read_back.aborted & read_back.writer.keys()


def assert_consistent(read_back: LedgerAndTopics, cut: Mapping[Partition, int]) -> int:
    """Check that a cut is consistent and return how many records crossed it.

    What was consumed of the repartition topic before the cut was written by the cut.
    """
    consumed = 0
    for (partition, offset), (entry,) in read_back.writer.items():
        if partition.topic == read_back.repartition and offset < cut[partition]:
            assert entry.is_in(cut), f"{partition}@{offset} of {entry}"
            consumed += 1
    return consumed


def test_a_producer_is_told_by_its_id_and_epoch(
    topics: Topics, unique: Callable[[str], str]
) -> None:
    """Check that a producer keeps its id, and that each takeover of its name adds one to its
    epoch."""
    host, _, port = topics.servers.rpartition(":")

    def dial(address: tuple[str, int] | None) -> BrokerConnection:
        return BrokerConnection(
            address or (host, int(port)), "checker", 10, SystemHost().create_lock()
        )

    name = unique("told")
    seen = []
    for _ in range(3):
        producer = Producer({"bootstrap.servers": topics.servers, "transactional.id": name})
        producer.init_transactions(HANG_LIMIT_S)
        seen.append(fetch_producer_identity(dial, name))
    assert [identity.producer_epoch for identity in seen] == [0, 1, 2]
    assert len({identity.producer_id for identity in seen}) == 1
    with pytest.raises(UnknownTransactionalId, match=r"never-there.*transactional_id_not_found"):
        fetch_producer_identity(dial, "never-there")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "guarantee",
    [
        "exactly_once_v2",
        "exactly_once",
    ],
)
def test_every_committed_record_is_in_one_entry_and_no_aborted_one_is_in_any(
    topics: Topics,
    new_worker: Callable[..., Worker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
) -> None:
    """Two workers of two threads write to the same partitions; one of them is killed twice."""
    for name, value in {
        "LEDGER": "true",
        "NUM_STREAM_THREADS": "2",
        "TRANSACTION_TIMEOUT_MS": "1500",
        "REPARTITION_PURGE_INTERVAL_MS": "3600000",
    }.items():
        monkeypatch.setenv(f"MILLRACE_{name}", value)
    other = new_worker("words", guarantee=guarantee, state="other")
    other.start()
    worker = new_worker("words", guarantee=guarantee)
    cuts: list[dict[Partition, int] | None] = []

    def a_cut_is_taken() -> bool:
        cuts.append(cut_of(topics))
        return cuts[-1] is not None

    def a_cut_has_consumed_written_records() -> bool:
        topics.load(50)
        cut = cuts[-1] if a_cut_is_taken() else None
        return cut is not None and any(cut[p] for p in cut if p.topic != topics.source)

    for step in (CommitStep.OFFSETS_SENT, CommitStep.PRODUCED):
        worker.start(kill_at=step.name, kill_commit=3)
        worker.load_until_killed(topics)
        a_cut_is_taken()
    worker.start()
    wait_until(
        a_cut_has_consumed_written_records,
        what="offsets that no transaction is to change, and some of the repartition topic",
    )
    for _ in range(5):
        topics.load(200)
        a_cut_is_taken()
    topics.wait_for_counts(2 * topics.loaded)
    worker.finish()
    other.finish()
    read_back = LedgerAndTopics(topics)
    assert read_back.aborted, "nothing was aborted: this run shows little"
    assert_exact(read_back)
    producers = Counter(entry.producer_id for entry in read_back.entries)
    assert len(producers) > 2, "one producer alone: its runs never end"
    last = cut_of(topics)
    assert last is not None
    assert all(entry.is_in(last) for entry in read_back.entries)
    taken = [cut for cut in cuts if cut is not None]
    assert any(not entry.is_in(cut) for cut in taken for entry in read_back.entries)
    assert sum(assert_consistent(read_back, cut) for cut in taken), "nothing was consumed by a cut"
