"""Fakes of what the runtime is made of, on a Kafka in memory; each call can be made to fail.

They are subclasses of what they stand for, so that the type checker holds them to its surface. All
write the names of their calls to one list, in the order in which they came.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from state.memory import MemoryDisk
from state.store import Checkpoint
from streams.errors import TaskMigrated
from streams.membership.classic import ClassicMember
from streams.membership.protocol import Assigned, Subscribed
from streams.membership.terms import Membership, Signal
from streams.positions import Committed, CommittedOffsets, Partition
from streams.runtime.clients import Admin, DataConsumer, DataProducer
from streams.runtime.clients.written import Written
from streams.runtime.host import ThreadHost
from tests.unit.streams.runtime.kafka import Entry, Kafka, Message, Transaction

NOW_MS = 1_700_000_000_000
"""What a producer writes for records without a timestamp."""


class Failure(NamedTuple):
    """What a call raises: before it has done anything, or after all was done."""

    error: Exception
    after: bool


class Script:
    """The order of all calls, and which of them fail."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._failures: dict[str, dict[int, Failure]] = {}

    def fail(self, call: str, error: Exception, *, at: int = 1, after: bool = False) -> None:
        """The `at`-th call of this name from now on raises `error`."""
        number = self.calls.count(call) + at
        self._failures.setdefault(call, {})[number] = Failure(error, after)

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        self.calls.append(name)
        failure = self._failures.get(name, {}).pop(self.calls.count(name), None)
        if failure is not None and not failure.after:
            raise failure.error
        yield
        if failure is not None:
            raise failure.error

    def untold(self) -> list[str]:
        """Calls that were to fail and did not come."""
        return [name for name, left in self._failures.items() if left]

    def only(self, *names: str) -> list[str]:
        """The calls of these names, in their order."""
        return [call for call in self.calls if call in names]


class Clock:
    """Monotonic seconds that pass when a test, or a fake that waits, says so."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


class FakeHost(ThreadHost):
    """A machine on this clock; its wall clock began in 1970 with it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def monotonic_s(self) -> float:
        return self._clock()

    def now_ms(self) -> int:
        return round(self._clock() * 1_000)

    def event(self) -> threading.Event:
        return Idle(self._clock)


class Idle(threading.Event):
    """Nobody works beside: waiting moves the clock and takes no time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        if not self.is_set():
            self._clock.advance(timeout or 0.0)
        return self.is_set()


class StopWhen(threading.Event):
    """A stop that comes true with its condition. Waiting moves the clock and takes no time."""

    def __init__(self, clock: Clock, looks_max: int = 2_000) -> None:
        super().__init__()
        self.condition: Callable[[], bool] = lambda: False
        self._clock = clock
        self._looks_left = looks_max

    def is_set(self) -> bool:
        if not super().is_set() and self.condition():
            self.set()
        self._looks_left -= 1
        if self._looks_left < 0:
            raise AssertionError("the loop went on without end")
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.advance(timeout or 0.0)
        return self.is_set()


class FakeConsumer(DataConsumer):
    """Reads the Kafka in memory at its positions; `name` goes before the names of its calls."""

    def __init__(self, kafka: Kafka, script: Script, clock: Clock, name: str = "consumer") -> None:
        self._kafka, self._script, self._clock, self._name = kafka, script, clock, name
        self._at: dict[Partition, int] = {}
        self._unread: set[Partition] = set()
        self._strayed: dict[Partition, int] = {}
        self.taken: list[Message] = []
        self.paused: set[Partition] = set()

    @property
    def assigned(self) -> set[Partition]:
        return set(self._at)

    def add(self, positions: Mapping[Partition, int]) -> None:
        with self._script.call(f"{self._name}.add"):
            assert not self._at.keys() & positions.keys(), "assigned twice"
            self._at |= positions
            self._unread |= positions.keys()

    def remove(self, partitions: Iterable[Partition]) -> None:
        with self._script.call(f"{self._name}.remove"):
            for partition in partitions:
                del self._at[partition]
                self._unread.discard(partition)
                self.paused.discard(partition)

    def take(self, records_max: int, timeout_s: float) -> list[Any]:
        with self._script.call(f"{self._name}.take"):
            taken: list[Message] = []
            for partition, position in self._at.items():
                if partition in self.paused:
                    continue
                start, end = self._kafka.starts[partition], self._kafka.high_watermark(partition)
                if not start <= position <= end:
                    self._strayed[partition] = position
                    continue
                found = list(self._kafka.read(partition, position))
                fit = found[: records_max - len(taken)]
                # At the end of what can be read the position passes markers and aborted records.
                end = self._kafka.last_stable(partition)
                reached = end if len(fit) == len(found) else fit[-1].offset() + 1 if fit else None
                if reached is not None and reached > position:
                    self._at[partition] = reached
                    self._unread.discard(partition)
                taken += fit
            if not taken:
                self._clock.advance(timeout_s)
            self.taken += taken
            return taken

    def strayed(self) -> dict[Partition, int]:
        strayed, self._strayed = self._strayed, {}
        return strayed

    def pause(self, partition: Partition) -> None:
        self.paused.add(partition)

    def resume(self, partition: Partition) -> None:
        self.paused.remove(partition)

    def lag(self, partition: Partition) -> int | None:
        return self._kafka.last_stable(partition) - self._at[partition]

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        with self._script.call(f"{self._name}.positions"):
            return {p: self._at[p] for p in partitions if p in self._at and p not in self._unread}

    def close(self) -> None:
        with self._script.call(f"{self._name}.close"):
            self._at = {}


class FakeProducer(DataProducer):
    """Holds records back until `flush`, as linger does. A new one fences the one before it."""

    def __init__(
        self,
        kafka: Kafka,
        script: Script,
        *,
        name: str = "id",
        transactional: bool = True,
        accounts: bool = False,
    ) -> None:
        self.name = name
        self.transactional = transactional
        self.written = Written() if accounts else None
        self.identity = None
        self.produced: list[tuple[str, bytes | None, bytes | None]] = []
        self.sent: list[list[tuple[Partition, Committed]]] = []
        self.full = 0
        """So many more calls of `produce` find the queue full."""
        self.lost_topics: set[str] = set()
        """Records to these are not delivered, and their reports say so."""
        self.discarded = False
        self.away = False
        """No broker answers when it is to end in order."""
        self.produce = self._produce
        self._kafka, self._script = kafka, script
        self._queue: list[tuple[Partition, Entry, Any]] = []
        self._transaction: Transaction | None = None
        with script.call("producer.init"):
            self._epoch = kafka.init_producer(name) if transactional else 0

    def partition_count(self, topic: str) -> int:
        return self._kafka.partition_counts()[topic]

    def _produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        report: Callable[[Any, Any], None] | None = None,
        _: None = None,
        timestamp_ms: int = 0,
        __: Any = None,
    ) -> None:
        with self._script.call(f"produce {topic}"):
            assert not self.discarded, "a producer was used after it was given up"
            if self.full:
                self.full -= 1
                raise BufferError
            if partition < 0:
                partition = zlib.crc32(key or b"") % self._kafka.partition_counts()[topic]
            # librdkafka takes 0 for no timestamp, and writes the time that it is.
            entry = Entry(key, value, timestamp_ms or NOW_MS, self._transaction)
            self._queue.append((Partition(topic, partition), entry, report))
            self.produced.append((topic, key, value))

    def begin(self) -> None:
        with self._script.call("producer.begin"):
            if self.transactional and self._transaction is None:
                self._transaction = Transaction()
                if self._epoch == self._kafka.epochs[self.name]:
                    self._kafka.open_transactions[self.name] = self._transaction

    def make_room(self) -> None:
        with self._script.call("producer.make_room"):
            self._deliver()

    def poll(self) -> None:
        with self._script.call("producer.poll"):
            pass

    def flush(self) -> None:
        with self._script.call("producer.flush"):
            self._deliver()

    def commit(self, offsets: Iterable[tuple[Partition, Committed]], group: bytes) -> None:
        with self._script.call("producer.commit"):
            self._check_epoch()
            assert self._transaction is not None, "offsets outside a transaction"
            self.sent.append(list(offsets))
            if self.sent[-1] and self._kafka.generations_over:
                # Without offsets nobody looks at the generation, as in Kafka.
                self._kafka.generations_over -= 1
                raise TaskMigrated("a generation that is over")
            self._transaction.offsets |= dict(self.sent[-1])

    def end(self) -> None:
        with self._script.call("producer.end"):
            self._deliver()
            self._check_epoch()
            transaction, self._transaction = self._transaction, None
            assert transaction is not None, "nothing to commit"
            del self._kafka.open_transactions[self.name]
            self._kafka.end(transaction, committed=True)

    def discard(self) -> None:
        self._script.calls.append("producer.discard")
        self.discarded = True

    def close(self) -> bool:
        self._script.calls.append("producer.close")
        self.discarded = True
        if self.away:
            return False
        transaction, self._transaction = self._transaction, None
        if transaction is not None and self._kafka.open_transactions.get(self.name) is transaction:
            del self._kafka.open_transactions[self.name]
            self._kafka.end(transaction, committed=False)
        return True

    def _check_epoch(self) -> None:
        if self._epoch != self._kafka.epochs[self.name]:
            raise TaskMigrated("a newer producer has this id")

    def _deliver(self) -> None:
        queue, self._queue = self._queue, []
        for partition, entry, report in queue:
            if self.transactional:
                self._check_epoch()
            if partition.topic in self.lost_topics:
                if report is not None:
                    report("timed out", None)
                continue
            offset = self._kafka.append(partition, entry)
            # With at least once only failures are reported (delivery.report.only.error).
            if report is None and self.written is not None:
                report = self.written.report
            if report is not None and self.transactional:
                report(None, Message(partition, offset, entry))


class FakeAdmin(Admin):
    """Answers from the Kafka in memory; `created` has every topic that was made with its config."""

    def __init__(self, kafka: Kafka, script: Script) -> None:
        self.created: dict[str, tuple[int, dict[str, str], int]] = {}
        self.others: list[str] = []
        """Groups."""
        self._kafka, self._script = kafka, script

    def partition_counts(self) -> dict[str, int]:
        with self._script.call("admin.partition_counts"):
            return self._kafka.partition_counts()

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        with self._script.call("admin.topic_ids"):
            return {topic: self._kafka.topic_ids[topic] for topic in topics}

    def topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        with self._script.call("admin.topic_settings"):
            return {topic: self._kafka.settings.get(topic, {}) for topic in topics}

    def create_topics(
        self, partitions: Mapping[str, int], settings: Mapping[str, dict[str, str]], factor: int
    ) -> None:
        with self._script.call("admin.create_topics"):
            for topic, number in partitions.items():
                self._kafka.create(topic, number)
                self.created[topic] = (number, settings[topic], factor)

    def groups(self) -> list[str]:
        with self._script.call("admin.groups"):
            return list(self.others)

    def delete_before(self, offsets: Mapping[Partition, int]) -> None:
        with self._script.call("admin.delete_before"):
            self._kafka.starts |= offsets

    def earliest(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        with self._script.call("admin.earliest"):
            return {p: self._kafka.starts[p] for p in partitions}

    def since(self, partitions: Sequence[Partition], timestamp_ms: int) -> dict[Partition, int]:
        with self._script.call("admin.since"):
            return {p: self._kafka.since(p, timestamp_ms) for p in partitions}

    def latest(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        with self._script.call("admin.latest"):
            return {p: self._kafka.high_watermark(p) for p in partitions}


class FakeMember(ClassicMember):
    """A membership that is given its tasks: `assign` says what the next join brings."""

    def __init__(self, kafka: Kafka, script: Script) -> None:
        self.instance_id = "worker-0"
        self.signalled = Signal.NOTHING
        self.leads = True
        self.turns = 0
        self.subscribed: list[tuple[str, ...]] = []
        self.former: list[tuple[str, ...]] = []
        """What it says at each join of the tasks that it ran before it was lost."""
        self.accepts_offsets = True
        self.known = False
        """Whether the group still knows a member whose offsets it refuses."""
        self.silent_since_s = None
        self._kafka, self._script = kafka, script
        self._membership = Membership(-1, "")
        self._generation = 0
        self._assigned: Assigned | None = None

    @property
    def current(self) -> Membership:
        return self._membership

    def assign(self, assigned: Assigned | None, *, generations: int = 1) -> None:
        """The next join gives this, so many generations after the last. None: it is stopped."""
        self._assigned = assigned
        self._generation += generations - 1

    def turned(self) -> None:
        self.turns += 1

    def signal(self) -> Signal:
        return self.signalled

    def join(self, subscribed: Subscribed) -> Assigned | None:
        with self._script.call("member.join"):
            self.subscribed.append(subscribed.tasks)
            self.former.append(subscribed.former)
            self.signalled = Signal.NOTHING
            self._generation += 1
            self._membership = Membership(self._generation, "member-1")
            return self._assigned

    def is_current(self) -> bool:
        with self._script.call("member.is_current"):
            return self.accepts_offsets or self.known

    def commit_offsets(self, offsets: Iterable[tuple[tuple[str, int], Committed]]) -> bool:
        with self._script.call("member.commit_offsets"):
            if self.accepts_offsets:
                self._kafka.offsets |= {Partition(*p): held for p, held in offsets}
            return self.accepts_offsets

    def committed_offsets(self, partitions: Iterable[tuple[str, int]]) -> CommittedOffsets:
        with self._script.call("member.committed_offsets"):
            asked = [Partition(*p) for p in partitions]
            pending = [p for p in asked if self._kafka.pending(p)]
            known = {p: held for p, held in self._kafka.offsets.items() if p in asked}
            stable = {p: held for p, held in known.items() if p not in pending}
            return CommittedOffsets({**stable}, [*pending])

    def leave(self, *, handed_over: bool = False) -> None:
        with self._script.call("member.leave"):
            pass

    def hand_over(self) -> None:
        with self._script.call("member.hand_over"):
            pass


class RecordingDisk(MemoryDisk):
    """A disk in memory that tells the script when it is written."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def write(self, changes: Mapping[bytes, bytes | None], checkpoint: Checkpoint) -> None:
        with self._script.call("store.write"):
            super().write(changes, checkpoint)
