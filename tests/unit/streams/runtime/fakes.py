"""Provide the in-memory clients of `streams.testing`, each call of which can be made to fail.

All write the names of their calls to one list, in the order of the calls. Their other public
attributes are set or read by the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from streams.common.host import Host, SystemHost
from streams.common.topic_partitions import OffsetAndMetadata, OffsetsToCommit, Partition
from streams.errors import TaskMigrated, WriteRefused
from streams.membership.group_member import Membership, MembershipSignal
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.runtime.clients.replication import Replication
from streams.runtime.restoring.changelog_follower import ChangelogFollower
from streams.testing.clients import InMemoryAdmin, InMemoryConsumer, InMemoryProducer
from streams.testing.cluster import Message
from streams.testing.member import OnlyMember
from streams.testing.simulated_host import SimulatedEvent, SimulatedHost
from streams.topology.declared import DeclaredTopology
from tests.unit.streams.runtime.kafka import Kafka

NOW_MS = 1_700_000_000_000
"""The timestamp that a producer gives to records without one."""
MESSAGE_BYTES_MAX = 1_000_000
"""librdkafka's default of `message.max.bytes`, about: a producer refuses larger records at once."""


class Failure(NamedTuple):
    """Holds the error that a call raises, before it has any effect or after all of it."""

    error: Exception
    after: bool


class Script:
    """Records the order of all calls and makes chosen ones fail."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._failures: dict[str, dict[int, Failure]] = {}
        self._actions: dict[str, Callable[[], None]] = {}

    def fail(self, call: str, error: Exception, *, at: int = 1, after: bool = False) -> None:
        """Make the `at`-th call of this name from now on raise `error`."""
        number = self.calls.count(call) + at
        self._failures.setdefault(call, {})[number] = Failure(error, after)

    def do_before(self, call: str, action: Callable[[], None]) -> None:
        """Do something once, before the next call of this name."""
        self._actions[call] = action

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        self.calls.append(name)
        if (action := self._actions.pop(name, None)) is not None:
            action()
        failure = self._failures.get(name, {}).pop(self.calls.count(name), None)
        if failure is not None and not failure.after:
            raise failure.error
        yield
        if failure is not None:
            raise failure.error

    def record_calls(self, client: object, name: str, methods: str) -> None:
        """Record each call of these methods of `client` in the script, such as `consumer.close`."""
        for method in methods.split():
            call = self.call(f"{name}.{method}")
            setattr(client, method, call(getattr(client, method)))

    def list_unmade_failures(self) -> list[str]:
        """Return the names of calls that were to fail but were not made."""
        return [name for name, left in self._failures.items() if left]

    def filter_calls(self, *names: str) -> list[str]:
        """Return the recorded calls with these names, in their order."""
        return [call for call in self.calls if call in names]


class Clock(SimulatedHost):
    """Represents a host whose clock advances only when a test or a waiting client advances it.

    Its wall clock began in 1970.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self.elapsed_s = 1_000.0

    def __call__(self) -> float:
        return self.elapsed_s

    def now_ms(self) -> int:
        return round(self.elapsed_s * 1_000)


class ThreadsOnClock(SystemHost):
    """Runs real threads of the operating system on the clock of a test."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def monotonic_s(self) -> float:
        return self.clock.monotonic_s()

    def now_ms(self) -> int:
        return self.clock.now_ms()


class StopWhen(SimulatedEvent):
    """Represents a stop event that is set as soon as its condition holds."""

    def __init__(self, clock: Clock, looks_max: int = 2_000) -> None:
        super().__init__(clock)
        self.condition: Callable[[], bool] = lambda: False
        self.looks_left = looks_max

    def is_set(self) -> bool:
        if not super().is_set() and self.condition():
            self.set()
        self.looks_left -= 1
        if self.looks_left < 0:
            raise AssertionError("the loop went on without end")
        return super().is_set()


class FakeConsumer(InMemoryConsumer):
    """Stands in for a consumer whose records and calls a test can read.

    `name` is the prefix of its calls' names.
    """

    def __init__(self, kafka: Kafka, script: Script, clock: Clock, name: str = "consumer") -> None:
        super().__init__(kafka)
        self._clock = clock
        self.taken: list[Message] = []
        self.seen_topic_ids: dict[str, str] = {}
        """The ids that topics are seen to have got, until they are taken."""
        script.record_calls(
            self,
            name,
            "add_partitions remove_partitions poll_records next_offsets renew_client close",
        )

    @property
    def assigned(self) -> set[Partition]:
        return set(self._positions)

    def poll_records(self, records_max: int, timeout_s: float) -> list[Any]:
        taken = super().poll_records(records_max, timeout_s)
        if not taken:
            self._clock.advance_monotonic_clock(timeout_s)
        self.taken += taken
        return taken

    def pop_seen_topic_ids(self) -> dict[str, str]:
        seen, self.seen_topic_ids = self.seen_topic_ids, {}
        return seen


def create_follower(
    kafka: Kafka,
    script: Script,
    clock: Clock,
    *,
    consumer: FakeConsumer | None = None,
    host: Host | None = None,
    **options: Any,
) -> ChangelogFollower[Any]:
    """Return a follower on fakes, whose consumer's calls are named `standby`."""
    return ChangelogFollower(
        "standby-0",
        lambda: consumer or FakeConsumer(kafka, script, clock, "standby"),
        FakeAdmin(kafka, script),
        host or clock,
        fetch_committed_offsets=OnlyMember(
            kafka, "", lambda _: {}, DeclaredTopology("", {}, {})
        ).fetch_committed_offsets,
        is_transactional=True,
        **options,
    )


class FakeProducer(InMemoryProducer):
    """Stands in for a producer: it records what it produces and can be made to fail."""

    def __init__(
        self,
        kafka: Kafka,
        script: Script,
        *,
        name: str = "id",
        transactional: bool = True,
        accounts: bool = False,
    ) -> None:
        with script.call("producer.init"):
            super().__init__(
                name,
                kafka,
                transactional=transactional,
                reports_deliveries=accounts,
                now_ms=lambda: NOW_MS,
                random=Random(0),
            )
        self.identity = None  # As with a real producer, it is looked up when needed.
        self.produced: list[tuple[str, bytes | None, bytes | None]] = []
        self.sent: list[list[tuple[Partition, OffsetAndMetadata]]] = []
        self.full_queue_count = 0
        """This many more calls of `produce` find the queue full."""
        self.lost_topics: set[str] = set()
        """Records to these topics are not delivered, and their delivery reports have an error."""
        self._failed: Exception | None = None
        """The error of the transaction, after which only a new producer helps."""
        self.discarded = False
        self.away = False
        """Whether `try_abort_and_close` finds no broker that answers, and returns False."""
        self._kafka, self._script = kafka, script
        script.record_calls(
            self,
            "producer",
            (
                "begin_transaction wait_for_queue_room poll_delivery_reports flush "
                "send_offsets_to_transaction commit_transaction abort_transaction discard "
                "try_abort_and_close"
            ),
        )

    def produce(
        self, topic: str, value: Any = None, key: Any = None, *rest: Any, **named: Any
    ) -> None:
        with self._script.call(f"produce {topic}"):
            assert not self.discarded, "a producer was used after it was given up"
            assert self._transaction or not self.transactional, "outside of a transaction"
            if self.full_queue_count:
                self.full_queue_count -= 1
                raise BufferError
            if self._failed is not None:
                raise KafkaException(KafkaError(KafkaError._STATE))
            if len(value or b"") + len(key or b"") > MESSAGE_BYTES_MAX:
                raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
            super().produce(topic, value, key, *rest, **named)
            self.produced.append((topic, key, value))

    def _ensure_topic(self, topic: str) -> None:
        assert topic in self._kafka.partition_counts, f"nobody has created {topic}"

    def _deliver_queue(self) -> None:
        for partition, *_, report in self._queue:
            if partition.topic in self.lost_topics and report is not None:
                report(KafkaError(KafkaError._MSG_TIMED_OUT), None)
        self._queue = [each for each in self._queue if each[0].topic not in self.lost_topics]
        if any(self._find_refusal(each) for each in self._queue):
            self._refuse_batch()
        super()._deliver_queue()

    def _find_refusal(self, record: tuple[Any, ...]) -> int:
        partition, key, value, *_ = record
        return self._kafka.find_refusal(partition.topic, key, value)

    def _refuse_batch(self) -> None:
        """Deliver nothing of the queue, as it has a refused record, and fail the transaction.

        As with librdkafka the reports say which it is, and where there are none the next call does.
        """
        batch, self._queue = self._queue, []
        unreported = 0
        for record in batch:
            code = self._find_refusal(record) or KafkaError._INVALID_DIFFERENT_RECORD
            if (report := record[-1]) is not None:
                report(KafkaError(code), None)
            else:
                unreported = code
        refusal = WriteRefused(f"a record was not delivered: {unreported}")
        if self.transactional:
            self._failed = refusal
        elif unreported:
            raise refusal

    def find_transaction_error(self) -> Exception | None:
        return self._failed

    def commit_transaction(self) -> None:
        self._raise_failure()
        super().commit_transaction()

    def _raise_failure(self) -> None:
        if self._failed is not None:
            raise self._failed

    def send_offsets_to_transaction(
        self, offsets: OffsetsToCommit, group_metadata: bytes, limit_s: float = math.inf
    ) -> None:
        self._raise_failure()
        self.sent.append(list(offsets))
        if self.sent[-1] and self._kafka.generations_over:
            # As in Kafka, only offsets have their generation checked.
            self._kafka.generations_over -= 1
            raise TaskMigrated("a generation that is over")
        super().send_offsets_to_transaction(self.sent[-1], group_metadata)

    def discard(self) -> None:
        self.discarded = True

    def try_abort_and_close(self) -> bool:
        self.discarded = True
        return not self.away and super().try_abort_and_close()


class FakeAdmin(InMemoryAdmin):
    """Stands in for an admin client that keeps each topic it has created in `created`."""

    def __init__(self, kafka: Kafka, script: Script) -> None:
        super().__init__(kafka)
        self.script = script
        self.created: dict[str, tuple[int, dict[str, str], int]] = {}
        self.group_ids: list[str] = []
        """Ids of the groups that `list_groups` returns."""
        self.racks: dict[Partition, frozenset[str]] = {}
        """What `fetch_replica_racks` returns."""
        self.replication: Replication | None = None
        """What `fetch_replication` returns in place of one broker."""
        asked = (
            "fetch_partition_counts fetch_topic_ids fetch_topic_settings "
            "fetch_replication fetch_replica_racks list_groups alter_topic_settings "
            "check_topic_rights fetch_earliest_offsets fetch_offsets_for_time fetch_latest_offsets "
            "fetch_available_latest_offsets"
        )
        script.record_calls(self, "admin", f"{asked} create_topics delete_records renew_client")

    def create_topics(
        self,
        partition_counts: Mapping[str, int],
        settings: Mapping[str, dict[str, str]],
        replication_factor: int,
    ) -> None:
        super().create_topics(partition_counts, settings, replication_factor)
        for topic, number in partition_counts.items():
            self.created[topic] = (number, settings[topic], replication_factor)

    def fetch_replication(self, topics: Sequence[str]) -> Replication:
        return self.replication or super().fetch_replication(topics)

    def fetch_replica_racks(self, topics: Sequence[str]) -> dict[Partition, frozenset[str]]:
        return {partition: r for partition, r in self.racks.items() if partition.topic in topics}

    def list_groups(self) -> list[str]:
        return list(self.group_ids)


class FakeMember(OnlyMember):
    """Stands in for a group membership; `assign` sets the assignment that the next join returns."""

    def __init__(self, kafka: Kafka, script: Script) -> None:
        super().__init__(kafka, "worker-0", lambda members: {}, DeclaredTopology("", {}, {}))
        self.is_leader = True
        self.signalled = MembershipSignal.NOTHING
        self.unready = ""
        self.turns = 0
        self.subscribed: list[tuple[str, ...]] = []
        self.subscriptions: list[SubscriptionInfo] = []
        self.answers_joins = True
        """Whether a join has an assignment that can be taken."""
        self.generation_is_over = False
        """Whether the group is known to refuse this generation's offsets."""
        self.former: list[tuple[str, ...]] = []
        """The tasks of each join's subscription that the member ran before it was lost."""
        self.offsets: list[Mapping[str, int]] = []
        """The tasks' offsets in each join's subscription."""
        self.accepts_offsets = True
        self.is_known_to_group = False
        """Whether the group still knows a member whose offsets it refuses."""
        self._generation = 0
        self._assigned: AssignmentInfo | None = None
        joins = "start_joining enter_assigned_generation"
        offsets = "try_commit_offsets fetch_committed_offsets"
        script.record_calls(
            self,
            "member",
            f"{joins} is_membership_confirmed {offsets} leave_group end_without_leaving_group",
        )

    def assign(self, assigned: AssignmentInfo | None, *, generations: int = 1) -> None:
        """Set the assignment that the next join returns, this many generations after the last.

        None stands for a member that was stopped while it joined.
        """
        self._assigned = assigned
        self._generation += generations - 1

    def mark_progress(self) -> None:
        self.turns += 1

    @property
    def unready_reason(self) -> str:
        return self.unready

    @property
    def is_generation_over(self) -> bool:
        return self.generation_is_over

    def mark_generation_over(self) -> None:
        self.generation_is_over = True

    def read_current_signal_or_raise(self) -> MembershipSignal:
        return self.signalled

    def start_joining(self, subscription: SubscriptionInfo) -> None:
        self.subscribed.append(subscription.tasks)
        self.former.append(subscription.former)
        self.subscriptions.append(subscription)
        self.offsets.append(subscription.offsets)
        self.signalled = MembershipSignal.NOTHING
        super().start_joining(subscription)

    def peek_assignment(  # type: ignore[override]  # the driver's never has one
        self, wait_s: float
    ) -> tuple[Membership, AssignmentInfo] | None:
        if self._assigned is None or not self.is_joining:
            return None
        return Membership(self._generation + 1, "member-1"), self._assigned

    def enter_assigned_generation(self, wait_s: float = 0.0) -> AssignmentInfo | None:
        if not self.answers_joins:
            return None
        self._subscription = None
        self.generation_is_over = False
        self._generation += 1
        self._membership = Membership(self._generation, "member-1")
        return self._assigned

    def lose_membership(self) -> None:
        """Let the group know no such member any more."""
        self._membership = Membership(-1, "")

    def is_membership_confirmed(self) -> bool:
        return self.accepts_offsets or self.is_known_to_group

    def try_commit_offsets(
        self, offsets: Iterable[tuple[tuple[str, int], OffsetAndMetadata]]
    ) -> bool:
        return self.accepts_offsets and super().try_commit_offsets(offsets)
