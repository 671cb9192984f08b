"""Provide a stream thread made of fakes, with real stores in a directory, and topologies for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from state.directory import StateDirectory
from streams import App, Processor, Record, Store, serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.connection.current import CurrentSecurity
from streams.connection.security import PLAINTEXT
from streams.errors import OutcomeUnknown
from streams.membership.broker_outage import BrokerOutage
from streams.membership.group_member import MembershipSignal
from streams.membership.protocol import AssignmentInfo
from streams.runtime.counters import ThreadCounters
from streams.runtime.offsets.offset_metadata import METADATA_BYTES_MAX, encode_metadata
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.runtime.restoring.changelog_reader import StoreChangelogReader
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.failures import FailureHandler
from streams.runtime.tasks.partition_group import RecordOrderSettings
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.runtime.tasks.task_offsets import TaskOffsets, find_dormant_tasks
from streams.runtime.threads.commit import CommitStep
from streams.runtime.threads.loop import StreamLoop
from streams.runtime.threads.producer_creation import RequireWanted
from streams.runtime.threads.producers import TaskProducers
from streams.runtime.threads.thread_dependencies import ThreadDependencies
from streams.runtime.threads.thread_state import ThreadState, create_thread_state_machine
from streams.runtime.threads.worker_control import WorkerControl
from streams.settings.exception_handlers import ExceptionHandlers
from streams.settings.offset_reset import InitialPolicies, parse_reset_policy
from streams.testing.cluster import InMemoryTransaction
from streams.topology.build import Topology
from tests.unit.streams.runtime.fakes import (
    Clock,
    FakeAdmin,
    FakeConsumer,
    FakeMember,
    FakeProducer,
    Script,
    StopWhen,
    create_follower,
)
from tests.unit.streams.runtime.kafka import Kafka

_NO_HANDLERS = ExceptionHandlers()
_NO_TOPICS: Mapping[str, int] = {}
CHANGELOG = "a-c-changelog"


def build_counting_topology(
    store: str | Store = "c", then: Callable[[int], int] = lambda counted: counted
) -> Topology:
    """Build application `a`: count `in` by key in store `c`, write `then(count)` into `out`."""
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    counts = stream.group_by_key().count(store=store).to_stream()
    counts.map_values(then).to("out")
    return app.topology()


def build_mapping_topology(function: Callable[[str], str]) -> Topology:
    """Build application `a`, which writes `function` of each value of `in` to `out`."""
    app = App("a")
    app.stream("in", key=serdes.string, value=serdes.string).map_values(function).to("out")
    return app.topology()


class Through(Processor[str, str, str, str]):
    """Forwards each record, and shares a store with others of its kind to be one task with them."""

    stores: ClassVar[Sequence[str | Store]] = ["c"]

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


def build_one_task_topology(
    *topics: str, processor: Callable[[], Processor[str, str, str, str]] = Through
) -> Topology:
    """Build application `a`: one task forwards the first topic to `out`, the others to `out-*`."""
    app = App("a")
    app.add_store(Store.in_memory("c", key=serdes.string, value=serdes.string))
    for topic in topics:
        stream = app.stream(topic, key=serdes.string, value=serdes.string)
        made = stream.process(processor, key=serdes.string, value=serdes.string)
        made.to("out" if topic == topics[0] else f"out-{topic}")
    return app.topology()


def assign_partitions(*numbers: int) -> AssignmentInfo:
    """Return an assignment of the tasks of sub-topology 0 on these partitions of `in`."""
    return AssignmentInfo(
        tuple(f"0_{number}" for number in numbers), tuple(("in", number) for number in numbers)
    )


def assign_roles(
    tasks: Sequence[int] = (), standby: Sequence[int] = (), warmup: Sequence[int] = ()
) -> AssignmentInfo:
    """Return an assignment in which a member processes, and follows, tasks of sub-topology 0."""
    return assign_partitions(*tasks)._replace(
        standby=tuple(f"0_{number}" for number in standby),
        warmup=tuple(f"0_{number}" for number in warmup),
        following=tuple(("in", number) for number in (*standby, *warmup)),
    )


class World:
    """Holds one stream thread, and the Kafka in memory that it runs on."""

    def __init__(
        self,
        topology: Topology,
        state: Path,
        *,
        partitions: int = 1,
        guarantee: str = "exactly_once_v2",
        commit_every_ms: int = 0,
        task_timeout_ms: int = 60_000,
        auto_offset_reset: str = "earliest",
        offset_out_of_range: str = "fail",
        max_task_idle_ms: int = 0,
        uncommitted_bytes_max: int = -1,
        handlers: ExceptionHandlers = _NO_HANDLERS,
        replaced: Callable[[Exception], bool] = lambda error: False,
        topics: Mapping[str, int] = _NO_TOPICS,
        kafka: Kafka | None = None,
        inputs_changed: Callable[[], bool] = lambda: False,
        metadata_bytes_max: int = METADATA_BYTES_MAX,
        adopt: Callable[[AssignmentInfo], AssignmentInfo] = lambda assigned: assigned,
        security: CurrentSecurity | None = None,
        thread_id: str = "a-slot-0",
        outage: BrokerOutage | None = None,
        clock: Clock | None = None,
        collect_statistics: bool = False,
        endpoint: str = "",
    ) -> None:
        self.fail_renewals = 0
        """This many of the next renewals of the clients fail."""
        self.renewals = 0
        """How often the clients were renewed."""
        self._guarantee = guarantee
        self.script = Script()
        self.clock = clock or Clock()
        dead = dict.fromkeys(handlers.dead_letter_topics(), 1)
        names = {"in": partitions, "out": 1, CHANGELOG: partitions, **dead, **topics}
        self.kafka = kafka or Kafka(names)
        self.stop = StopWhen(self.clock)
        self.member = FakeMember(self.kafka, self.script)
        self.member.assign(assign_partitions(*range(partitions)))
        self.consumer = FakeConsumer(self.kafka, self.script, self.clock)
        self.directory = StateDirectory(state, "a")
        self.producers: list[FakeProducer] = []
        self.states: list[ThreadState] = []
        self.steps: list[CommitStep] = []
        admin = FakeAdmin(self.kafka, self.script)
        self.control = WorkerControl()
        resetting = OffsetResetter(
            admin,
            self.clock,
            initial_policies=InitialPolicies(
                parse_reset_policy(auto_offset_reset, stop_word="none")
            ),
            offset_out_of_range=offset_out_of_range,
            internal_topics=topology.repartition_topics,
        )
        counters = ThreadCounters()
        changelog_reader = StoreChangelogReader[Task](
            "restore-0",
            FakeConsumer(self.kafka, self.script, self.clock, "restore"),
            admin,
            self.clock,
            is_transactional=guarantee != "at_least_once",
            timeout_ms=task_timeout_ms,
        )
        self.follower = create_follower(self.kafka, self.script, self.clock)
        self.restorer = Restorer(changelog_reader, self.follower, self.clock)
        self.loop = StreamLoop(
            ThreadDependencies(
                control=self.control,
                name="thread 0",
                group="a",
                member=self.member,
                consumer=self.consumer,
                restorer=self.restorer,
                offset_resetter=resetting,
                admin=admin,
                task_creator=TaskCreator(
                    topology,
                    self.directory,
                    resetting,
                    self.clock,
                    committed_offsets=self.member.fetch_committed_offsets,
                    is_transactional=guarantee != "at_least_once",
                    failures=FailureHandler(
                        handlers,
                        counters=counters,
                        monotonic_s=self.clock,
                        list_topics=lambda: self.kafka.partition_counts.keys(),
                    ),
                    metadata_bytes_max=metadata_bytes_max,
                    collect_statistics=collect_statistics,
                ),
                producers=TaskProducers(
                    self._new_producer,
                    guarantee=guarantee,
                    application_id="a",
                    thread_id=thread_id,
                    is_member=self.member.is_membership_confirmed,
                    host=self.clock,
                    creation_timeout_ms=task_timeout_ms,
                    is_overdue=None if outage is None else outage.is_overdue,
                ),
                stop=self.stop,
                host=self.clock,
                commit_interval_ms=commit_every_ms,
                poll_records_max=10,
                order_settings=RecordOrderSettings(max_task_idle_ms, buffered_records_max=20),
                uncommitted_bytes_max=uncommitted_bytes_max,
                task_timeout_ms=task_timeout_ms,
                on_state_change=create_thread_state_machine(
                    "thread 0", self.states.append
                ).change_state,
                on_commit_step=self.steps.append,
                directory_id="machine",
                endpoint=endpoint,
                task_offsets=TaskOffsets(
                    self.directory, find_dormant_tasks(topology, self.directory, self.clock)
                ),
                counters=counters,
                mend_topics_and_compare_inputs=inputs_changed,
                adopt_assignment=adopt,
                input_check_interval_ms=1_000,
                decide_replacement=replaced,
                check_rights=self.check_rights,
                check_internal_topics=self.check_internal_topics,
                security=security or CurrentSecurity(PLAINTEXT),
                renew_clients=self._renew_clients,
                outage=outage,
            )
        )

    def check_rights(self) -> None:
        """Find no missing right."""

    def check_internal_topics(self) -> None:
        """Find no internal topic that is gone."""

    def load(self, *values: str, key: str = "k", partition: int = 0) -> None:
        self.kafka.load(Partition("in", partition), *((key, value) for value in values))

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Run the loop until the condition holds, which is evaluated at every turn."""
        self.stop.condition = condition
        self.loop.run_until_stopped()

    def rebalance(self, assigned: AssignmentInfo) -> None:
        """Let the group rebalance, and the member get this assignment when it joins again."""
        self.member.assign(assigned)
        self.member.signalled = MembershipSignal.REBALANCE

    def turn(self, count: int = 10) -> None:
        """Take so many turns of the loop."""
        for _ in range(count):
            self.loop.run_once()

    def consumed(self, partition: int = 0) -> bool:
        """Return whether all records of a partition of `in` are committed."""
        asked = Partition("in", partition)
        held = self.kafka.committed_offsets.get(asked)
        return held is not None and held.offset == self.kafka.logs[asked].high_watermark

    def read_counts(self) -> dict[str, list[int]]:
        """Return every count that was written to `out` for each key, in order."""
        written: dict[str, list[int]] = {}
        for key, value in self.kafka.committed("out"):
            counted = int.from_bytes(value or b"", "big")
            written.setdefault((key or b"").decode(), []).append(counted)
        return written

    def _renew_clients(self) -> None:
        if self.fail_renewals:
            self.fail_renewals -= 1
            raise OutcomeUnknown("no broker answers")
        self.renewals += 1

    def _new_producer(self, name: str, require_wanted: RequireWanted = None) -> FakeProducer:
        transactional = self._guarantee != "at_least_once"
        self.producers.append(
            FakeProducer(self.kafka, self.script, name=name, transactional=transactional)
        )
        return self.producers[-1]


def block_restore(world: World, partition: int) -> InMemoryTransaction:
    """Open a transaction in a task's changelog, so that its restore lasts until this one ends."""
    changelog = Partition(CHANGELOG, partition)
    world.kafka.load(changelog, ("k", "12345678"))
    world.kafka.committed_offsets[Partition("in", partition)] = OffsetAndMetadata(
        0, encode_metadata({"c": 1})
    )
    transaction = InMemoryTransaction()
    world.kafka.append_record(changelog, b"k", b"87654321", 0, transaction=transaction)
    return transaction
