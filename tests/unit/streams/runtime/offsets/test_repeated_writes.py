"""Test which inputs without an offset are refused where a repartition topic has their records."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import pytest

from streams import App, serdes
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, PositionRefused
from streams.runtime.offsets.committed_record_search import CommittedRecordSearch
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.runtime.offsets.preset_offsets import PRESET_ENTRY
from streams.runtime.offsets.repeated_writes import RepeatedWriteCheck
from streams.testing.clients import InMemoryAdmin, InMemoryConsumer
from streams.testing.cluster import InMemoryCluster, InMemoryTransaction
from tests.unit.streams.runtime.fakes import Clock

FIRST, SECOND = Partition("in", 0), Partition("in", 1)
REPARTITION = Partition("a-c-repartition", 0)
OWN = OffsetAndMetadata(1, encode_metadata({}, partition_time_ms=1))
RESTORED = OffsetAndMetadata(2, encode_metadata({"c": 2}))
NO_RECORD = OffsetAndMetadata(2, encode_metadata({"c": 0}))
BY_TOOL = OffsetAndMetadata(0, "")


class Checking:
    """Holds a check of two tasks that regroup `in`, and what the group has committed."""

    def __init__(self) -> None:
        self.cluster = InMemoryCluster()
        for topic in ("in", REPARTITION.topic):
            self.cluster.create_topic(topic, 2)
        self.offsets: dict[Partition, OffsetAndMetadata] = {}
        self.pending: list[Partition] = []
        self.fetch_count = 0
        app = App("a")
        stream = app.stream("in", key=serdes.string, value=serdes.string)
        stream.group_by(lambda key, value: value, key=serdes.string).count(store="c")
        admin = InMemoryAdmin(self.cluster)
        search = CommittedRecordSearch(admin, partial(InMemoryConsumer, self.cluster), Clock())
        self.check = RepeatedWriteCheck(app.topology(), admin, search, self.fetch)

    def fetch(self, partitions: Collection[Partition] | None) -> CommittedOffsets:
        self.fetch_count += 1
        wanted = self.offsets if partitions is None else partitions
        return CommittedOffsets(
            {p: self.offsets[p] for p in wanted if p in self.offsets},
            [p for p in self.pending if p in wanted],
        )

    def write(self, *, committed: bool | None = True) -> None:
        """Write a record to the repartition topic in a transaction, which is open for None."""
        transaction = InMemoryTransaction()
        self.cluster.append_record(REPARTITION, b"k", b"v", 1, transaction=transaction)
        if committed is not None:
            self.cluster.end_transaction(transaction, committed=committed)

    def purge(self) -> None:
        log = self.cluster.logs[REPARTITION]
        log.start_offset = log.high_watermark

    def find_waiting(self, partition: Partition = SECOND) -> list[Partition]:
        """Check one task, and return its inputs that have to wait. Raises PositionRefused."""
        tasks = {f"0_{partition.number}": [partition]}
        return self.check.find_untrusted_inputs(tasks, self.offsets, deleted=()).waiting


@pytest.fixture
def checking() -> Checking:
    return Checking()


def test_a_worker_that_starts_later_than_the_first_one_is_no_refusal(checking: Checking) -> None:
    checking.write()
    checking.offsets[FIRST] = OWN
    assert checking.find_waiting() == []


@pytest.mark.parametrize("topic", ["in", REPARTITION.topic])
def test_a_topic_that_the_brokers_do_not_list_yet_is_looked_up_again(
    checking: Checking, topic: str
) -> None:
    checking.write()
    del checking.cluster.partition_counts[topic]
    with pytest.raises(OutcomeUnknown, match=f"partitions of {topic}: no broker has them"):
        checking.find_waiting()


def own_offset(*, preset: bool) -> OffsetAndMetadata:
    """Return an offset of a task that has found one that a tool had set, or has not."""
    return OffsetAndMetadata(1, encode_metadata({}, 1, entries={PRESET_ENTRY: int(preset)}))


def test_a_single_offset_that_is_set_back_is_refused(checking: Checking) -> None:
    checking.write()
    checking.offsets |= {FIRST: own_offset(preset=False), SECOND: BY_TOOL}
    with pytest.raises(PositionRefused, match=r"offset 0 of in\[1\] was not committed by"):
        checking.find_waiting()


@pytest.mark.parametrize(
    "of_first", [own_offset(preset=True), OWN], ids=["as the first task says", "says nothing"]
)
def test_offsets_that_were_set_before_the_first_start_are_taken_at_any_time(
    checking: Checking, of_first: OffsetAndMetadata
) -> None:
    checking.write()
    checking.offsets |= {FIRST: of_first, SECOND: BY_TOOL}
    assert checking.find_waiting() == []


@pytest.mark.parametrize(
    ("held", "is_preset"),
    [
        ({}, False),
        ({SECOND: BY_TOOL}, True),
        ({FIRST: OWN, SECOND: BY_TOOL}, True),
        ({FIRST: own_offset(preset=True), SECOND: OWN}, False),
    ],
    ids=["a first start", "the other was set", "says nothing", "all have begun"],
)
def test_a_task_tells_whether_a_tool_had_set_offsets_when_it_started(
    checking: Checking, held: dict[Partition, OffsetAndMetadata], is_preset: bool
) -> None:
    checking.offsets |= held
    found = checking.check.find_untrusted_inputs({"0_0": [FIRST]}, checking.offsets, deleted=())
    assert found.preset_by_task == {"0_0": is_preset}


def test_in_a_usual_start_no_offsets_are_fetched(checking: Checking) -> None:
    checking.offsets |= {FIRST: own_offset(preset=False)}
    found = checking.check.find_untrusted_inputs({"0_0": [FIRST]}, checking.offsets, deleted=())
    assert found.preset_by_task == {"0_0": False}
    assert checking.fetch_count == 0


def test_a_first_commit_of_another_worker_is_waited_for(checking: Checking) -> None:
    checking.write()
    checking.pending = [FIRST]
    assert checking.find_waiting() == [SECOND]
    checking.pending, checking.offsets[FIRST] = [], OWN
    assert checking.find_waiting() == []


@pytest.mark.parametrize("committed", [False, None], ids=["aborted", "open"])
def test_records_that_are_not_committed_prove_nothing(
    checking: Checking, committed: bool | None
) -> None:
    checking.write(committed=committed)
    assert checking.find_waiting() == []


@pytest.mark.parametrize(
    ("of_repartition", "is_refused"),
    [(None, True), (OWN, True), (RESTORED, True), (NO_RECORD, False), (BY_TOOL, True)],
    ids=["gone", "had records", "restored", "had none", "set by a tool"],
)
def test_a_purged_topic_had_records_unless_its_offsets_know_of_none(
    checking: Checking, of_repartition: OffsetAndMetadata | None, is_refused: bool
) -> None:
    checking.write(committed=False)
    checking.purge()
    if of_repartition is not None:
        checking.offsets[REPARTITION] = of_repartition
    if is_refused:
        with pytest.raises(PositionRefused, match="no committed offset for in"):
            checking.find_waiting()
    else:
        assert checking.find_waiting() == []


def test_an_input_that_takes_the_place_of_another_is_no_refusal(checking: Checking) -> None:
    checking.write()
    checking.offsets[Partition("before", 1)] = OWN
    assert checking.find_waiting() == []


def test_all_tasks_of_one_start_are_named_in_one_refusal(checking: Checking) -> None:
    checking.write()
    tasks = {"0_0": [FIRST], "0_1": [SECOND], "1_0": [REPARTITION]}
    with pytest.raises(PositionRefused, match=r"offset for in\[0\], in\[1\]: "):
        checking.check.find_untrusted_inputs(tasks, {}, deleted=())


def test_an_input_that_was_made_again_is_left_to_its_policy(checking: Checking) -> None:
    checking.write()
    tasks = {"0_0": [FIRST]}
    assert checking.check.find_untrusted_inputs(tasks, {}, deleted=[FIRST]).inputs == []
