"""Test that a commit follows one order of steps, with one transaction for all tasks.

The disks are written only after Kafka has committed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from state.directory import StateDirectory
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams import serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated
from streams.graph.nodes import Graph, ProcessorNode, SinkNode, SourceNode, StoreSpec
from streams.graph.views import StoredView
from streams.ledger import LedgerTransaction as LedgerEntry
from streams.ledger import WrittenRange, decode, decode_order, encode_order
from streams.membership.connection import ConnectionLost
from streams.membership.producer_identity import ProducerIdentity, UnknownTransactionalId
from streams.operators.count import count_records
from streams.operators.to_stream import forward_as_records
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.runtime.tasks.partition_group import NEVER_WAIT, RecordOrderSettings
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_stores import TaskStores
from streams.runtime.threads import ledger_writer
from streams.runtime.threads.commit import CommitStep, PartitionOffsets, TaskCommitter
from streams.runtime.threads.ledger_writer import LedgerWriter, limit_orders_to_bytes
from streams.runtime.threads.producers import TaskProducers
from streams.testing.cluster import InMemoryTransaction
from streams.testing.simulated_host import SimulatedHost
from streams.topology.build import Subtopology, build_topology
from tests.unit.streams.runtime.fakes import (
    Clock,
    FakeAdmin,
    FakeConsumer,
    FakeMember,
    FakeProducer,
    Script,
)
from tests.unit.streams.runtime.kafka import Kafka

INPUTS = ("left", "right")


def build_subtopology_of_two_stores() -> Subtopology:
    """Build a sub-topology that counts `left` in store `l` and `right` in store `r`, into `out`."""
    graph = Graph()
    counts = []
    for topic in INPUTS:
        source = SourceNode(name=topic, topic=topic, key=serdes.string, value=serdes.string)
        spec = StoreSpec(name=topic[0], key=serdes.string, value=serdes.int64)
        counted = ProcessorNode(
            name=f"count-{topic}",
            parents=(source,),
            operator=count_records(StoredView(spec)),
            stores=(spec.name,),
            emits_updates=True,
        )
        results = ProcessorNode(
            name=f"results-{topic}", parents=(counted,), operator=forward_as_records
        )
        graph.declare_store(spec, owner=counted)
        graph.add_node(source)
        graph.add_node(counted)
        graph.add_node(results)
        counts.append(results)
    sink = SinkNode(
        name="sink", parents=tuple(counts), topic="out", key=serdes.string, value=serdes.int64
    )
    graph.add_node(sink)
    (subtopology,) = build_topology("a", graph).subtopologies
    return subtopology


class Thread:
    """Holds the committing parts of a stream thread, and two tasks that read `left` and `right`."""

    def __init__(
        self, state: Path, *, guarantee: str = "exactly_once_v2", ledger: bool = False
    ) -> None:
        self.script = Script()
        self.committed: list[PartitionOffsets] = []
        self.now_ms = 1_000
        self.when_committed: Callable[[], None] = lambda: None
        topics = {
            "left": 2,
            "right": 2,
            "out": 1,
            "a-l-changelog": 2,
            "a-r-changelog": 2,
            "a-ledger": 1,
        }
        self.kafka = Kafka(topics)
        self.kafka.init_producer("id")  # An earlier producer had epoch 0; none of this one has.
        self.consumer = FakeConsumer(self.kafka, self.script, Clock())
        self.member = FakeMember(self.kafka, self.script)
        self.producers = TaskProducers(
            lambda name, _=None: FakeProducer(
                self.kafka,
                self.script,
                name=name,
                transactional=guarantee != "at_least_once",
                accounts=ledger,
            ),
            guarantee=guarantee,
            application_id="a",
            thread_id="id",
            is_member=self.member.is_membership_confirmed,
            host=Clock(),
            creation_timeout_ms=1_000,
        )
        self.disks: dict[tuple[int, str], MemoryDisk] = {}
        self.subtopology = build_subtopology_of_two_stores()
        self.directory = StateDirectory(state, "a")
        self._keeps_order = ledger
        self.tasks = [self._task(number) for number in range(2)]
        self.committer = TaskCommitter(
            self.consumer,
            FakeAdmin(self.kafka, self.script),
            self.producers,
            ledger=LedgerWriter("a-ledger", self._identity_of) if ledger else None,
            get_group_metadata=lambda: b"group",
            hold_membership=self.member.hold_membership,
            commit_as_member=self.member.try_commit_offsets,
            on_commit=self._committed,
            on_step=lambda step: self.script.calls.append(step.name),
            now_ms=lambda: self.now_ms,
        )

    def process(self, topic: str, number: int, *keys: str) -> None:
        """Append the records and let the tasks process all that they have not read yet."""
        self.kafka.load(Partition(topic, number), *((key, "v") for key in keys))
        for message in self.consumer.poll_records(100, 0):
            task = self.tasks[message.partition()]
            self.producers.begin_transaction(task.name)
            task.commit_needed = True
            task.buffered_records.add_records(
                Partition(message.topic(), message.partition()), [message]
            )
        for task in self.tasks:
            task.steps.process_runs(task.buffered_records.pop_next_runs(100, 0))
        self.script.calls.clear()

    def _identity_of(self, transactional_id: str) -> ProducerIdentity:
        with self.script.call("identity_of"):
            return ProducerIdentity(7, self.kafka.producer_epochs[transactional_id])

    def entries(self) -> list[LedgerEntry]:
        return [decode(value or b"") for _, value in self.kafka.committed("a-ledger")]

    @property
    def producer(self) -> FakeProducer:
        return self.producer_of(0)

    def producer_of(self, number: int) -> FakeProducer:
        producer = self.producers.get_producer(f"0_{number}")
        assert isinstance(producer, FakeProducer)
        return producer

    def _committed(self, offsets: PartitionOffsets) -> None:
        self.committed.append(offsets)
        self.when_committed()

    def commit(self) -> int:
        return self.committer.commit_tasks(self.tasks)

    def _task(self, number: int) -> Task:
        stores = {}
        for spec in self.subtopology.stores:
            disk = self.disks[number, spec.name] = MemoryDisk()
            self.script.record_calls(disk, "store", "write_changes")
            store = open_store(spec, disk)
            changelog = Partition(f"a-{spec.name}-changelog", number)
            stores[spec.name] = LoggedStore(
                store, changelog, f"id-{spec.name}", changelog_position=0
            )
        positions = {Partition(topic, number): 0 for topic in INPUTS}
        self.consumer.add_partitions(positions)
        task = Task(
            f"0_{number}",
            self.subtopology,
            partitions=list(positions),
            stores=TaskStores(f"0_{number}", stores),
            lock=self.directory.lock_task(f"0_{number}"),
        )
        task.start_restoring(positions, required_changelog_positions={}, partition_times_ms={})
        self.producers.try_prepare_producer(task.name)
        producer = self.producers.get_producer(task.name)
        order = RecordOrderSettings(NEVER_WAIT, keeps_order=self._keeps_order)
        task.start_processing(producer, self.consumer, order, SimulatedHost(0))
        return task


def metadata_of(committed: OffsetAndMetadata) -> dict[str, int | None]:
    metadata = decode_metadata(committed.metadata)
    return {store: metadata.position_of_store(store) for store in ("l", "r")}


def test_the_steps_of_a_commit_come_in_one_order(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "k")
    assert thread.commit() == 1
    assert thread.script.calls == [
        "PROCESSED",
        "produce out",
        "produce a-l-changelog",
        "producer.flush",
        "PRODUCED",
        "consumer.next_offsets",
        "producer.send_offsets_to_transaction",
        "OFFSETS_SENT",
        "producer.commit_transaction",
        "COMMITTED",
        "store.write_changes",
        "STORED",
    ]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_what_is_committed_is_told_once_it_is(tmp_path: Path, guarantee: str) -> None:
    thread = Thread(tmp_path, guarantee=guarantee)
    thread.process("left", 0, "k")
    thread.script.fail("consumer.next_offsets", OutcomeUnknown("?"))
    with pytest.raises(OutcomeUnknown):
        thread.commit()
    assert thread.committed == []
    thread = Thread(tmp_path / "another", guarantee=guarantee)
    thread.process("left", 0, "k")
    thread.process("left", 1, "k")
    thread.commit()
    told = [each for offsets in thread.committed for each in offsets]
    assert dict(told) == thread.kafka.committed_offsets


def test_a_task_that_wrote_and_has_no_offset_to_send_commits_nothing(tmp_path: Path) -> None:
    """Test that a transaction without a task's offset is refused: no group would fence a zombie's.

    See docs/architecture.md, decision 9.
    """
    thread = Thread(tmp_path)
    thread.process("left", 0, "k")
    thread.process("left", 1, "k")
    thread.tasks[1].positions.clear()
    with pytest.raises(RuntimeError, match="task 0_1 would commit what it wrote without an offset"):
        thread.commit()
    assert "producer.send_offsets_to_transaction" not in thread.script.calls
    assert "producer.commit_transaction" not in thread.script.calls


def test_with_a_ledger_each_transaction_says_what_it_read_and_wrote(tmp_path: Path) -> None:
    thread = Thread(tmp_path, ledger=True)
    thread.process("left", 0, "a", "b", "a")
    thread.process("right", 1, "c")
    thread.commit()
    thread.process("left", 0, "a")
    thread.commit()
    first, second = thread.entries()
    assert first.inputs == {
        "0_0": {Partition("left", 0): 3, Partition("right", 0): 0},
        "0_1": {Partition("left", 1): 0, Partition("right", 1): 1},
    }
    assert first.written == {
        Partition("out", 0): (WrittenRange(0, 2),),
        Partition("a-l-changelog", 0): (WrittenRange(0, 1),),
        Partition("a-r-changelog", 1): (WrittenRange(0, 0),),
    }
    assert second.inputs == {"0_0": {Partition("left", 0): 4, Partition("right", 0): 0}}
    # After the markers of the first: 3 in `out`, 2 in the changelog.
    assert second.written == {
        Partition("out", 0): (WrittenRange(4, 4),),
        Partition("a-l-changelog", 0): (WrittenRange(3, 3),),
    }
    assert {(e.producer_id, e.producer_epoch) for e in (first, second)} == {(7, 1)}
    assert thread.script.calls.count("identity_of") <= 1


def test_with_a_ledger_each_transaction_says_in_which_order_its_tasks_took_records(
    tmp_path: Path,
) -> None:
    thread = Thread(tmp_path, ledger=True)
    thread.process("left", 0, "a", "b")
    thread.process("right", 0, "c")
    thread.process("left", 0, "a")
    thread.process("right", 1, "c")
    thread.commit()
    thread.process("left", 0, "a")
    thread.commit()
    first, second = ({t: decode_order(o) for t, o in e.order.items()} for e in thread.entries())
    assert first == {"0_0": [(0, 2), (1, 1), (0, 1)], "0_1": [(1, 1)]}
    assert second == {"0_0": [(0, 1)]}


def test_an_order_that_is_too_long_for_a_record_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_writer, "ORDER_BYTES_MAX", len(encode_order([(0, 1)])))
    thread = Thread(tmp_path, ledger=True)
    thread.process("left", 0, "a")
    thread.process("left", 1, "a")
    thread.commit()
    (entry,) = thread.entries()
    assert entry.order.keys() == {"0_0"}
    assert entry.inputs.keys() == {"0_0", "0_1"}


def test_orders_go_before_the_states_of_look_ups_that_have_no_room_beside_them() -> None:
    orders = {"0_0": "12345", "0_1": "123"}
    lookups = {"0_0": {"long": "123", "short": "1"}, "0_1": {}}
    assert limit_orders_to_bytes(orders, lookups, 12) == (orders, {"0_0": lookups["0_0"]})
    assert limit_orders_to_bytes(orders, lookups, 9) == (orders, {"0_0": {"short": "1"}})
    assert limit_orders_to_bytes(orders, lookups, 8) == (orders, {})
    assert limit_orders_to_bytes(orders, lookups, 4) == ({"0_1": "123"}, {})


def test_the_ledger_is_written_when_all_else_is_delivered_and_before_the_offsets(
    tmp_path: Path,
) -> None:
    thread = Thread(tmp_path, ledger=True)
    thread.process("left", 0, "a")
    thread.commit()
    names = [
        "producer.flush",
        "PRODUCED",
        "produce a-ledger",
        "producer.send_offsets_to_transaction",
        "producer.commit_transaction",
    ]
    assert thread.script.filter_calls(*names) == names


def test_a_ledger_that_can_not_tell_the_producer_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    thread = Thread(tmp_path, ledger=True)
    thread.process("left", 0, "a")
    thread.script.fail("identity_of", ConnectionLost("gone"))
    with pytest.raises(OutcomeUnknown, match="identity of id: gone"):
        thread.commit()
    assert "producer.send_offsets_to_transaction" not in thread.script.calls


def test_a_producer_that_its_coordinator_has_forgotten_is_replaced(tmp_path: Path) -> None:
    thread = Thread(tmp_path, ledger=True)
    thread.process("left", 0, "a")
    thread.script.fail("identity_of", UnknownTransactionalId("transactional_id_not_found"))
    with pytest.raises(TaskMigrated, match=r"not_found \(transactional.id.expiration.ms\)"):
        thread.commit()
    assert "producer.send_offsets_to_transaction" not in thread.script.calls


def test_the_points_that_a_commit_reaches_are_the_named_ones(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "k")
    thread.commit()
    reached = [call for call in thread.script.calls if call in CommitStep.__members__]
    assert reached == [
        step.name for step in CommitStep if step not in (CommitStep.STORING, CommitStep.RESTORING)
    ]


def test_nothing_happens_when_no_task_has_done_anything(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.script.calls.clear()
    assert thread.commit() == 0
    assert thread.script.calls == []


def test_a_task_is_clean_after_its_commit(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "k")
    thread.commit()
    thread.script.calls.clear()
    assert thread.commit() == 0
    assert thread.script.calls == []


def test_offsets_of_every_input_name_the_changelog_position_of_every_store(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "a", "b", "a")
    thread.process("right", 0, "c")
    thread.commit()
    ((left, right),) = thread.producer.sent
    assert (left[0], left[1].offset) == (Partition("left", 0), 3)
    assert (right[0], right[1].offset) == (Partition("right", 0), 1)
    assert metadata_of(left[1]) == metadata_of(right[1]) == {"l": 2, "r": 1}


def test_an_input_that_did_not_advance_is_sent_again_with_the_new_metadata(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "a")
    thread.commit()
    thread.process("left", 0, "b")
    thread.commit()
    assert dict(thread.producer.sent[1]).keys() == {Partition("left", 0), Partition("right", 0)}
    idle = thread.kafka.committed_offsets[Partition("right", 0)]
    # One entry, its marker, and one more: 3 is the position after the second.
    assert (idle.offset, metadata_of(idle)) == (0, {"l": 3, "r": 0})


def test_the_position_that_is_committed_is_past_trailing_markers(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    inputs = Partition("left", 0)
    transaction = InMemoryTransaction()
    thread.kafka.append_record(inputs, b"a", b"v", 0, transaction=transaction)
    thread.kafka.end_transaction(transaction, committed=True)
    thread.process("left", 0)
    thread.commit()
    assert thread.kafka.committed_offsets[inputs].offset == 2


def test_all_dirty_tasks_go_into_one_transaction(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "a")
    thread.process("right", 1, "b")
    assert thread.commit() == 2
    (sent,) = thread.producer.sent
    assert {partition.number for partition, _ in sent} == {0, 1}
    assert thread.script.filter_calls("producer.flush", "producer.commit_transaction") == [
        "producer.flush",
        "producer.commit_transaction",
    ]


def test_a_task_with_a_producer_of_its_own_has_a_transaction_of_its_own(tmp_path: Path) -> None:
    thread = Thread(tmp_path, guarantee="exactly_once")
    thread.process("left", 0, "a")
    thread.process("right", 1, "b")
    assert thread.commit() == 2
    for number in range(2):
        assert thread.producer_of(number).name == f"a-task:0_{number}"
        (sent,) = thread.producer_of(number).sent
        assert {partition.number for partition, _ in sent} == {number}
    assert thread.script.filter_calls(
        "producer.flush",
        "producer.send_offsets_to_transaction",
        "producer.commit_transaction",
        "STORED",
    ) == [
        *["producer.flush"] * 2,
        *["producer.send_offsets_to_transaction", "producer.commit_transaction", "STORED"] * 2,
    ]


def test_of_two_transactions_the_first_stands_when_the_second_fails(tmp_path: Path) -> None:
    thread = Thread(tmp_path, guarantee="exactly_once")
    thread.process("left", 0, "a")
    thread.process("left", 1, "b")
    thread.script.fail("producer.send_offsets_to_transaction", OutcomeUnknown("?"), at=2)
    with pytest.raises(OutcomeUnknown):
        thread.commit()
    assert thread.disks[0, "l"].read_checkpoint() == StoreCheckpoint(
        1, "id-l", 1_000, committed_end=1
    )
    assert thread.disks[1, "l"].read_checkpoint() is None
    assert thread.kafka.committed_offsets.keys() == {Partition(topic, 0) for topic in INPUTS}


def test_a_clean_task_takes_no_part_in_a_commit(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 1, "a")
    thread.commit()
    (sent,) = thread.producer.sent
    assert {partition.number for partition, _ in sent} == {1}


def test_a_checkpoint_is_as_old_as_the_begin_of_its_commit(tmp_path: Path) -> None:
    """Test that a checkpoint's time is that of the commit's begin, not of its end.

    A thread that is suspended between Kafka's commit and its own may have lost the task meanwhile.
    """
    thread = Thread(tmp_path)
    thread.process("left", 0, "a")
    thread.when_committed = lambda: setattr(thread, "now_ms", 999_999)
    thread.commit()
    found = thread.disks[0, "l"].read_checkpoint()
    assert found is not None
    assert found.written_ms == 1_000


def test_disks_get_what_was_committed_with_the_position_after_it(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "a", "b")
    thread.commit()
    disk = thread.disks[0, "l"]
    assert [key for key, _ in disk.range(None, None)] == [b"a", b"b"]
    assert disk.read_checkpoint() == StoreCheckpoint(2, "id-l", 1_000, committed_end=2)
    assert thread.disks[0, "r"].read_checkpoint() is None


@pytest.mark.parametrize(
    "call",
    [
        "produce out",
        "produce a-l-changelog",
        "producer.flush",
        "consumer.next_offsets",
        "producer.send_offsets_to_transaction",
        "producer.commit_transaction",
    ],
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [OutcomeUnknown("?"), TaskMigrated("!"), StreamsError("no")])
def test_a_failure_at_any_step_leaves_the_disks_as_they_were(
    tmp_path: Path, call: str, after: bool, error: Exception
) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "a")
    thread.commit()
    thread.process("left", 0, "a", "b")
    before = list(thread.disks[0, "l"].range(None, None)), thread.disks[0, "l"].read_checkpoint()
    thread.script.fail(call, error, after=after)
    with pytest.raises(type(error)):
        thread.commit()
    assert (
        list(thread.disks[0, "l"].range(None, None)),
        thread.disks[0, "l"].read_checkpoint(),
    ) == before
    assert thread.script.list_unmade_failures() == []


def test_a_changelog_that_was_not_delivered_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "a")
    thread.producer.lost_topics = {"a-l-changelog"}
    with pytest.raises(OutcomeUnknown, match=r"changelog not delivered: .*timed out"):
        thread.commit()
    assert "producer.send_offsets_to_transaction" not in thread.script.calls
    assert "store.write_changes" not in thread.script.calls


def test_a_full_queue_is_waited_for_and_the_changelog_is_whole(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "a", "b")
    thread.producer.full_queue_count = 1
    thread.script.calls.clear()
    for task in thread.tasks:
        task.stores.send_changes_to_changelog(thread.producer)
    assert "producer.wait_for_queue_room" in thread.script.calls
    assert [key for _, key, _ in thread.producer.produced] == [b"a", b"b"]


def test_at_least_once_commits_offsets_as_a_member_after_all_is_delivered(tmp_path: Path) -> None:
    thread = Thread(tmp_path, guarantee="at_least_once")
    thread.process("left", 0, "a", "b")
    thread.commit()
    assert thread.script.calls == [
        "PROCESSED",
        "produce out",
        "produce out",
        "member.is_membership_confirmed",
        "produce a-l-changelog",
        "produce a-l-changelog",
        "producer.flush",
        "PRODUCED",
        "consumer.next_offsets",
        "admin.fetch_latest_offsets",
        "member.try_commit_offsets",
        "COMMITTED",
        "store.write_changes",
        "STORED",
    ]
    committed = thread.kafka.committed_offsets[Partition("left", 0)]
    assert (committed.offset, metadata_of(committed)) == (2, {"l": 2, "r": 0})


def test_at_least_once_a_zombie_writes_nothing_into_its_changelogs(tmp_path: Path) -> None:
    thread = Thread(tmp_path, guarantee="at_least_once")
    thread.process("left", 0, "a")
    thread.member.accepts_offsets = False
    with pytest.raises(TaskMigrated, match="does not know this member any more"):
        thread.commit()
    assert thread.kafka.logs[Partition("a-l-changelog", 0)].entries == []


def test_at_least_once_nothing_is_written_while_the_group_can_not_be_asked(tmp_path: Path) -> None:
    thread = Thread(tmp_path, guarantee="at_least_once")
    thread.process("left", 0, "a")
    thread.script.fail("member.is_membership_confirmed", ConnectionLost("gone"))
    with pytest.raises(OutcomeUnknown, match="our membership: gone"):
        thread.commit()
    assert thread.kafka.logs[Partition("a-l-changelog", 0)].entries == []


def test_exactly_once_the_group_is_not_asked_for_it_checks_each_offset(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    thread.process("left", 0, "a")
    thread.commit()
    assert "member.is_membership_confirmed" not in thread.script.calls


def test_at_least_once_offsets_that_the_group_refuses_mean_that_the_tasks_are_gone(
    tmp_path: Path,
) -> None:
    thread = Thread(tmp_path, guarantee="at_least_once")
    thread.process("left", 0, "a")
    thread.member.accepts_offsets = False
    thread.member.is_known_to_group = True  # The group still knows the member.
    with pytest.raises(TaskMigrated, match="offsets were refused"):
        thread.commit()
    assert list(thread.disks[0, "l"].range(None, None)) == []


def test_at_least_once_a_lost_connection_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    thread = Thread(tmp_path, guarantee="at_least_once")
    thread.process("left", 0, "a")
    thread.script.fail("member.try_commit_offsets", ConnectionLost("gone"))
    with pytest.raises(OutcomeUnknown, match="commit offsets: gone"):
        thread.commit()
    assert list(thread.disks[0, "l"].range(None, None)) == []
