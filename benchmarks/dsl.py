"""Measure what each DSL operator costs for a record: microseconds, and calls of functions.

    python -m benchmarks.dsl [--records 100000] [--rounds 3] [--only join] [--part steps]

A sub-topology is bound as a task binds it, on stores in memory, and given messages without a
broker; a commit comes after each 1 000 records. From its time is taken what reading the same
records costs alone, so a line is the operator's own price, with what it does at a commit, and with
the sink's where one is named. Times are of the processor, the best of the rounds. A call is one of
a Python function, the user's among them: of a step without state there is one, and one of the user.

Without metrics, and with metrics_recording_level=info and debug, batches of 10 000 records take
turns. `info` and `debug` are the medians of the rounds' ratios, reading included. They are of steps
alone: a worker also polls, produces and commits. So whole applications run after it, in workers on
a broker (`benchmarks.application_levels`). Those differ by more than is to be measured, so what the
levels add to the steps is compared with what an application takes (`benchmarks.level_estimates`).
All end with the aims: 2 % and 10 % of count and map; for steps with the nanoseconds that a level
adds to a record.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.application_levels import (
    find_record_us,
    measure_applications,
    print_applications,
)
from benchmarks.dsl_cases import AIMED_CASES, CASES, TOPICS
from benchmarks.level_estimates import measure_worker_costs, print_estimates
from benchmarks.recorded import record
from benchmarks.recording_levels import AIMS, LEVELS, Level, SliceMeter, bind_at
from state.cache import ObjectCache
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams import App
from streams.runtime.tasks.context import TaskContext
from streams.runtime.tasks.failures import FAIL_ON_ANY_ERROR
from streams.runtime.tasks.metered_stores import meter_store
from streams.runtime.tasks.store_opening import open_store
from streams.testing.simulated_host import SimulatedHost
from streams.topology.compile import compile_subtopology

_COMMIT_RECORDS = 1_000
_SLICE_RECORDS = 256
"""The most records that a thread processes before it does something else."""
_TURN_BATCHES = 10
"""The batches of 1 000 records that a level processes before it is the next one's turn."""
_BEST_OF_ROUNDS = 15
"""The rounds of which the best time of each batch is taken, if no more are asked for."""
_KEYS = 1_000
_STEP_MS = 10
_PROFILED = 2_000


class Message:
    """Represents a record with the methods of a consumer's message."""

    __slots__ = ("_key", "_offset", "_time", "_topic", "_value")

    def __init__(self, topic: str, offset: int, key: bytes, value: bytes, time_ms: int) -> None:
        self._topic, self._offset = topic, offset
        self._key, self._value, self._time = key, value, (1, time_ms)

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return self._time

    def headers(self) -> None:
        return None


Take = Callable[[Sequence[Message]], None]
BatchTimes = dict[Level, list[list[float]]]
"""By level, round and batch the processor seconds of the batch."""


class BoundApp:
    """Runs an application's sub-topologies as one task each, and counts produced records."""

    def __init__(self, app: App, level: Level = "info") -> None:
        self.receivers: dict[str, Take] = {}
        self._stores: list[Any] = []
        self._contexts: list[TaskContext] = []
        self._meters: list[SliceMeter] = []
        self.produced = 0
        cache = ObjectCache(10 << 20)
        for sub in app.topology().subtopologies:
            stores = {spec.name: open_store(spec, MemoryDisk(), cache=cache) for spec in sub.stores}
            producer: Any = self
            host = SimulatedHost(0)
            meters = [
                meter_store(stores[spec.name], spec.kind, host, details=level == "debug")
                for spec in sub.stores
                if level != "off"
            ]
            context = TaskContext(
                f"{sub.number}_0",
                producer,
                stores,
                FAIL_ON_ANY_ERROR,
                stream_time_ms=-1,
                clocks=host,
            )
            meter = SliceMeter(level, context, meters)
            with bind_at(level):
                receivers = compile_subtopology(sub, context)
            self.receivers |= {
                topic: self._create_receiver(topic, context, receive, meter)
                for topic, receive in receivers.items()
            }
            self._meters.append(meter)
            self._stores += stores.values()
            self._contexts.append(context)

    def produce(self, topic: str, value: Any, key: Any, *rest: Any) -> None:
        """Count a record that a sink produces."""
        self.produced += 1

    def wait_for_queue_room(self) -> None:
        """Return at once, since the queue is never full."""

    def find_transaction_error(self) -> Exception | None:
        return None

    def fetch_partition_count(self, topic: str) -> int:
        """Return 1 for every topic."""
        return 1

    @staticmethod
    def _create_receiver(
        topic: str, context: TaskContext, receive: Callable[[Any], None], meter: SliceMeter
    ) -> Take:
        preview_values = context.value_previews.get(topic)

        def receive_all(messages: Sequence[Message]) -> None:
            if preview_values is not None:
                preview_values({message.value() for message in messages})
            for begin in range(0, len(messages), _SLICE_RECORDS):
                part = messages[begin : begin + _SLICE_RECORDS]
                for message in part:
                    context.message = message
                    receive(message)
                meter.add_slice(part)

        return receive_all

    def measure_batch(self, batch: Mapping[str, Sequence[Message]]) -> float:
        """Process a batch, the commit included, and return the processor time in seconds."""
        began = time.process_time()
        for topic, receive in self.receivers.items():
            receive(batch.get(topic, []))
        self.commit()
        return time.process_time() - began

    def commit(self) -> None:
        """Flush the operators and commit the stores of all tasks."""
        for context in self._contexts:
            context.message = None
            for flush in reversed(context.commit_callbacks):
                flush()
        for store in self._stores:
            store.drain_writes()
            store.commit(StoreCheckpoint(0, "t"))
        for meter in self._meters:
            meter.add_commit()


class Cost(NamedTuple):
    """Holds the cost of one record in microseconds and in function calls."""

    us: float
    calls: float


def create_batches(records: int) -> Iterator[dict[str, list[Message]]]:
    """Yield batches of input records by topic, each of them processed before one commit."""
    chance = random.Random(7)
    for begin in range(0, records, _COMMIT_RECORDS):
        batch: dict[str, list[Message]] = {topic: [] for topic in TOPICS}
        for number in range(begin, begin + _COMMIT_RECORDS):
            key = b"key-%d" % chance.randrange(_KEYS)
            for topic in TOPICS:
                message = Message(topic, number, key, b"value %d" % number, 1 + number * _STEP_MS)
                batch[topic].append(message)
        yield batch


def measure_seconds(
    describe: Callable[[App], object],
    inputs: list[dict[str, list[Message]]],
    level: Level = "off",
) -> float:
    """Process the inputs, commits included, and return the processor time in seconds."""
    app = App("bench")
    describe(app)
    bound_app = BoundApp(app, level)
    gc.collect()
    return sum(map(bound_app.measure_batch, inputs))


def count_calls(describe: Callable[[App], object], topics: Sequence[str]) -> float:
    """Count the calls of Python functions for a record, leaving out those of commits."""
    app = App("bench")
    describe(app)
    bound_app = BoundApp(app)
    batch = next(create_batches(_PROFILED))
    counted = 0

    def count_call(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        # Calls of a message's methods, and of the loop around, are not the operator's.
        if event == "call" and frame.f_code.co_filename != __file__:
            counted += 1

    sys.setprofile(count_call)
    try:
        for topic, receive in bound_app.receivers.items():
            receive(batch.get(topic, []))
    finally:
        sys.setprofile(None)
    return counted / (_COMMIT_RECORDS * len(topics))


def read_only(app: App, topics: Sequence[str]) -> None:
    """Add to an application sources of the topics, with nothing done with their records."""
    for topic in topics:
        key, value = TOPICS[topic]
        app.stream(topic, key=key, value=value)


def main() -> None:
    """Measure every operator, and what metrics cost steps and whole applications."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--part", choices=("steps", "application"), help="one part of it alone")
    parser.add_argument("--application-records", type=int, default=500_000)
    options = parser.parse_args()
    if options.part != "application":
        measure_steps(options)
    if options.part != "steps" and not options.only:
        records: int = options.application_records
        took = measure_applications(records, options.rounds)
        print_applications(took, records)
        added_ns = measure_added_ns(options.records, max(options.rounds, _BEST_OF_ROUNDS))
        print_estimates(find_record_us(took, records), added_ns, measure_worker_costs())


def measure_added_ns(records: int, rounds: int) -> dict[str, dict[Level, float]]:
    """Return by operator the nanoseconds that each level adds to a record of its steps alone."""
    inputs = list(create_batches(records))
    found = {}
    for case in CASES:
        if case.name in AIMED_CASES:
            mine = [{topic: batch[topic] for topic in case.topics} for batch in inputs]
            took = measure_levels(case.describe, mine, rounds)
            found[AIMED_CASES[case.name]] = find_added_ns(took, _COMMIT_RECORDS * len(case.topics))
    return found


def find_added_ns(took: BatchTimes, batch_records: int) -> dict[Level, float]:
    """Return the nanoseconds that each level adds to a record, by the best time of each batch.

    A batch has the same records in each round, and what disturbs it only makes it longer. The first
    one of a turn is left out, where there are others.
    """
    count = len(took["off"][0])
    chosen = [at for at in range(count) if at % _TURN_BATCHES] or [0]
    best = {
        level: [min(batches[at] for batches in rounds) for at in chosen]
        for level, rounds in took.items()
    }
    records = len(chosen) * batch_records
    return {level: (sum(best[level]) - sum(best["off"])) * 1e9 / records for level in AIMS}


def measure_steps(options: argparse.Namespace) -> None:
    """Measure the steps of every operator alone, and print their cost."""
    inputs = list(create_batches(options.records))
    print(f"{'operator':44} {'us a record':>12} {'calls':>7} {'info':>7} {'debug':>7}")
    ratios: dict[str, dict[Level, float]] = {}
    added_ns: dict[str, dict[Level, float]] = {}
    for case in CASES:
        if options.only not in case.name:
            continue
        topics = case.topics
        mine = [{topic: batch[topic] for topic in topics} for batch in inputs]

        def describe_reading(app: App, topics: Sequence[str] = topics) -> None:
            read_only(app, topics)

        times = measure_levels(case.describe, mine, options.rounds)
        took = {level: list(map(sum, rounds)) for level, rounds in times.items()}
        alone = min(measure_seconds(describe_reading, mine) for _ in range(options.rounds))
        each_us = 1e6 / (options.records * len(topics))
        record("dsl", case.name, "ours", "us", [(each - alone) * each_us for each in took["off"]])
        cost = Cost(
            (min(took["off"]) - alone) * each_us,
            count_calls(case.describe, topics) - count_calls(describe_reading, topics),
        )
        ratios[case.name] = found = {
            level: statistics.median(
                metered / plain for metered, plain in zip(took[level], took["off"], strict=True)
            )
            for level in LEVELS
        }
        added_ns[case.name] = find_added_ns(times, _COMMIT_RECORDS * len(topics))
        levels = " ".join(f"{found[level]:7.3f}" for level in AIMS)
        print(f"{case.name:44} {cost.us:12.2f} {cost.calls:7.1f} {levels}", flush=True)
    report_aims(ratios, added_ns)


def measure_levels(
    describe: Callable[[App], object], inputs: list[dict[str, list[Message]]], rounds: int
) -> BatchTimes:
    """Return the processor seconds of each batch, without metrics and at each level.

    The levels take turns, so that others on the machine slow them down alike. A turn has several
    batches: the first slice of a turn finds nothing of its own in the processor's caches, which
    takes a level with more to do longer than it ever takes a worker.
    """
    turns = [inputs[at : at + _TURN_BATCHES] for at in range(0, len(inputs), _TURN_BATCHES)]
    took: BatchTimes = {level: [] for level in LEVELS}
    orders = list(itertools.permutations(LEVELS))
    for number in range(rounds):
        apps: dict[Level, BoundApp] = {}
        for level in LEVELS:
            app = App("bench")
            describe(app)
            apps[level] = BoundApp(app, level)
            took[level].append([])
        gc.collect()
        for at, turn in enumerate(turns, number):
            for level in orders[at % len(orders)]:
                took[level][-1] += map(apps[level].measure_batch, turn)
    return took


def report_aims(
    ratios: Mapping[str, Mapping[Level, float]], added_ns: Mapping[str, Mapping[Level, float]]
) -> None:
    """Print whether the levels cost count and map more than they are to, and what they add."""
    for name in AIMED_CASES & ratios.keys():
        for level, aim in AIMS.items():
            ratio = ratios[name][level]
            verdict = "within" if ratio <= aim else "ABOVE"
            print(
                f"{name}, {level}: {ratio:.3f} of the time without metrics, {verdict} {aim:.2f}; "
                f"{added_ns[name][level]:.0f} ns a record"
            )


if __name__ == "__main__":
    main()
