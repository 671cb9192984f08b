"""Run an application with a poison record among good ones, until it has consumed all or ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import KafkaError

from streams import App
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.membership.protocol import AssignmentInfo
from streams.settings.exception_handlers import ExceptionHandlers
from streams.topology.build import Topology
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import World

IN, OTHER = Partition("in", 0), Partition("other", 0)
POISON = "poison"
KEYS = ("k0", "k1", "k2", "k3")
POISONED_KEY = "k1"
FIRST_MS = 1_000
DEAD = "dead"

Written = dict[str, Counter[tuple[bytes | None, bytes | None]]]


class Outcome(NamedTuple):
    """Holds what is committed when an application has consumed its inputs, or has ended."""

    written: Written
    """The records of each topic that the application writes."""
    letters: list[Any]
    error: StreamsError | None
    world: World


def load_inputs(kafka: Kafka, poison: Any) -> int:
    """Write two records of each key, one of them poison if it is given; return its offset, or -1.

    `poison` is written by the function of the offset, or left out where it is None.
    """
    time_ms, offset = FIRST_MS, -1
    for key in KEYS:
        kafka.append_record(OTHER, key.encode(), b"other", time_ms)
    for round_number in range(2):
        for key in KEYS:
            time_ms += 1
            if round_number and key == POISONED_KEY:
                if poison is not None:
                    offset = kafka.logs[IN].high_watermark
                    poison(kafka, time_ms)
                continue
            value = f"{key}-{round_number}"
            kafka.append_record(IN, key.encode(), value.encode(), time_ms, [("h", b"1")])
    return offset


def list_topics(topology: Topology) -> dict[str, int]:
    """Return the topics that an application reads and writes, changelogs included."""
    topics = {"in", "other", "out", "after", DEAD}
    for sub in topology.subtopologies:
        topics |= sub.sources.keys()
        topics |= {sink.topic for sink in sub.sinks if isinstance(sink.topic, str)}
        topics |= {topology.restore_topic_of(spec.name) for spec in sub.stores if spec.logged}
    return dict.fromkeys(sorted(topics), 1)


def assign_all(topology: Topology) -> AssignmentInfo:
    """Return the assignment of all tasks, with one partition of each topic."""
    return AssignmentInfo(
        tuple(f"{sub.number}_0" for sub in topology.subtopologies),
        tuple((topic, 0) for sub in topology.subtopologies for topic in sub.sources),
    )


class Run(NamedTuple):
    """Holds an application on a cluster in memory, to be started once or several times."""

    topology: Topology
    kafka: Kafka
    state: Path
    guarantee: str
    offset: int
    """The offset of the poison record."""

    def start(self, handlers: ExceptionHandlers, trouble: Mapping[str, int] = {}) -> Outcome:
        """Run until all inputs are consumed, or until an error ends the thread.

        `trouble` says which call of a name fails: its outcome is unknown, and it had its effect
        where the number is negative.
        """
        world = World(
            self.topology,
            self.state,
            guarantee=self.guarantee,
            handlers=handlers,
            kafka=self.kafka,
            max_task_idle_ms=0,
        )
        world.member.assign(assign_all(self.topology))
        for call, at in trouble.items():
            world.script.fail(call, OutcomeUnknown("no answer"), at=abs(at), after=at < 0)
        error = None
        try:
            world.run_until(lambda: self._is_consumed(world))
        except StreamsError as raised:
            error = raised
        return Outcome(self._read_written(), self._read_letters(), error, world)

    def _is_consumed(self, world: World) -> bool:
        for sub in self.topology.subtopologies:
            for topic in sub.sources:
                held = self.kafka.committed_offsets.get(Partition(topic, 0))
                log = self.kafka.logs[Partition(topic, 0)]
                if next(log.read_committed(0 if held is None else held.offset), None) is not None:
                    return False
        return not self.kafka.open_transactions

    def _read_written(self) -> Written:
        names = ("out", "after")
        return {name: Counter(self.kafka.committed(name)) for name in names}

    def _read_letters(self) -> list[Any]:
        return list(self.kafka.logs[Partition(DEAD, 0)].read_committed(0))


def _refuse_without_key(topic: str, key: bytes | None, value: bytes | None) -> int:
    """Refuse what a compacted topic does; an input may have such records."""
    return KafkaError.INVALID_RECORD if topic == "out" and key is None else 0


def prepare(build: Callable[[App], None], state: Path, guarantee: str, poison: Any = None) -> Run:
    """Build an application and the cluster with its topics and inputs."""
    app = App("a")
    build(app)
    topology = app.topology()
    kafka = Kafka(list_topics(topology))
    kafka.find_refusal = _refuse_without_key
    return Run(topology, kafka, state, guarantee, load_inputs(kafka, poison))
