"""Test how long partitions stand still, and what is replayed, while workers come, go and die.

The application of `benchmarks.rebalance` runs with a standby of each task: 16 partitions, up to 4
workers, a steady load. The bounds of a pause are made of what the same run has measured: the
longest pause before any event, and while a worker of another application starts and ends on the
same machine. What is replayed is bounded by offsets, and by no time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from benchmarks.fleet import Fleet, FleetSettings
from benchmarks.rebalance import (
    ADDED,
    KILLED,
    PARTITIONS,
    RESTARTED,
    STOPPED,
    WORKERS,
    Pauses,
    Run,
    fill_topics,
    run_events,
    start_application,
)
from benchmarks.restore_log import RestoreEvent, RestoreStep, count_restored, read_restores
from state.write_behind import WAITING_S_MAX
from tests.brokers import IN_CI, SETTINGS, Broker, EmbeddedProcess
from tests.crashes.bugs import promotions_begin_with_nothing
from tests.processes import wait_until

pytestmark = IN_CI

KEYS, VALUE_BYTES = 500, 1_000
SESSION_MS, HEARTBEAT_MS, PROBING_MS = 4_000, 500, 2_000
ACCEPTABLE_LAG = 100
NOISE_FACTOR = 5
"""How many times as long a pause may be as one that has nothing to do with the group."""


class Bracket(NamedTuple):
    """Holds what is known before an event: who has which tasks, what is committed, what was logged.

    `end_offsets` are those of the changelogs; the owner of each partition has stored what is before
    them, and so has a standby.
    """

    owners: list[str]
    end_offsets: dict[int, int]
    step_counts: dict[str, int]


class Noise(NamedTuple):
    """Holds the longest pause in s that has nothing to do with the group, and the time of a start.

    The time is that from the start of a worker's process until it processes tasks.
    """

    pause_s: float
    start_s: float


class Replayed(NamedTuple):
    """Holds how many records were replayed after an event, and how many standbys were promoted."""

    record_count: int
    promoted_count: int


class Application:
    """Represents a running application, and what its workers have restored."""

    def __init__(self, run: Run, settings: FleetSettings) -> None:
        self.run = run
        self._changelog = f"{settings.application}-sums-changelog"
        self._admin = AdminClient({"bootstrap.servers": settings.servers})

    def fetch_end_offsets(self) -> dict[int, int]:
        """Return where the committed records of each changelog partition end."""
        wanted = {
            TopicPartition(self._changelog, n): OffsetSpec.latest() for n in range(PARTITIONS)
        }
        found = self._admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
        return {each.partition: found[each].result().offset for each in wanted}

    def read_steps(self, worker: str) -> list[RestoreStep]:
        return read_restores(self.run.fleet.state_of(worker))

    def prepare_event(self) -> Bracket:
        """Wait until each partition has a standby with what is committed now."""
        owners, end_offsets = self.run.watch.owners(), self.fetch_end_offsets()

        def find_behind() -> list[int]:
            followed = {worker: find_positions(self.read_steps(worker)) for worker in WORKERS}
            return [
                partition
                for partition, end_offset in end_offsets.items()
                if not any(
                    positions.get(partition, 0) >= end_offset
                    for worker, positions in followed.items()
                    if worker != owners[partition]
                )
            ]

        wait_until(lambda: not find_behind(), what=lambda: f"no standby of {find_behind()}")

        self._wait_until_on_disk()
        step_counts = {worker: len(self.read_steps(worker)) for worker in WORKERS}
        return Bracket(owners, end_offsets, step_counts)

    def _wait_until_on_disk(self) -> None:
        """Wait until the owners' disks have what is committed now.

        Changes wait for a second at most (`state.write_behind`). The first commit after that writes
        them, and has written them before the next one of the same worker ends.
        """
        due_at_s = time.monotonic() + WAITING_S_MAX
        wait_until(lambda: time.monotonic() >= due_at_s, what="changes to be due")
        for _ in range(2):
            ends = self.fetch_end_offsets()
            wait_until(partial(self._have_grown, ends), what="another commit")

    def _have_grown(self, ends: Mapping[int, int]) -> bool:
        """Return whether each changelog partition has ended beyond its end in `ends`."""
        now = self.fetch_end_offsets()
        return all(now[partition] > end for partition, end in ends.items())

    def check_restores(self, bracket: Bracket) -> Replayed:
        """Check that each restore since has begun where the worker's state was, and count."""
        steps: list[RestoreStep] = []
        for worker in WORKERS:
            all_steps, before = self.read_steps(worker), bracket.step_counts[worker]
            positions = find_positions(all_steps[:before])
            for partition, owner in enumerate(bracket.owners):
                if owner == worker:
                    positions[partition] = bracket.end_offsets[partition]
            for step in all_steps[before:]:
                if step.event is RestoreEvent.BEGAN:
                    # The state of a task that moves is followed elsewhere first (KIP-441).
                    warm = bracket.end_offsets[step.partition] - ACCEPTABLE_LAG
                    least = max(positions.get(step.partition, 0), warm)
                    assert step.offset >= least, (
                        f"the restore of partition {step.partition} by {worker} began at "
                        f"{step.offset}, below {least}"
                    )
                positions[step.partition] = step.offset
            steps += all_steps[before:]
        promoted = [step for step in steps if step.event is RestoreEvent.PROMOTED]
        return Replayed(count_restored(steps), len(promoted))


def find_positions(steps: Sequence[RestoreStep]) -> dict[int, int]:
    """Return the last offset that a worker's store of each partition has reached by restores."""
    return {step.partition: step.offset for step in steps}


def measure_noise(run: Run, settings: FleetSettings, directory: Path) -> Noise:
    """Measure the pauses while a worker of another application starts and is killed."""
    other = settings._replace(application=f"{settings.application}-other")
    fill_topics(other.servers, other.application, KEYS)
    start_s = 0.0

    def start_and_kill() -> None:
        nonlocal start_s
        before_s = time.monotonic()
        fleet.start_worker("other")
        wait_until(lambda: fleet.is_running("other"), what="the other application")
        start_s = time.monotonic() - before_s
        fleet.kill_worker("other")

    with closing(Fleet("millrace", other, directory)) as fleet:
        pauses = run.measure_event("other", start_and_kill, set(WORKERS[:3]))
    return Noise(max(pauses.quiet_s, pauses.stayed_s), start_s)


def list_bounds(event: str, noise: Noise) -> tuple[float, float]:
    """Return the longest pauses in s of what stays and of what moves that an event may cause.

    A member hears of a rebalance with its next heartbeat; what moves is given up in a first
    rebalance and taken over in a second, and a third one may follow.
    """
    noise_s, heartbeat_s = NOISE_FACTOR * noise.pause_s, HEARTBEAT_MS / 1000
    moved_s = 3 * heartbeat_s + noise_s
    if event == RESTARTED:
        moved_s += 2 * noise.start_s
    if event == KILLED:
        moved_s += SESSION_MS / 1000
    return heartbeat_s + noise_s, moved_s


def make_settings(servers: str, application: str) -> FleetSettings:
    times = (PROBING_MS, SESSION_MS, HEARTBEAT_MS)
    return FleetSettings(servers, application, VALUE_BYTES, 1, *times, ACCEPTABLE_LAG)


@pytest.fixture
def embedded() -> Iterator[EmbeddedProcess]:
    made = EmbeddedProcess(SETTINGS)
    made.start()
    yield made
    made.close()


def measure_events(
    application: Application,
) -> Iterator[tuple[str, Pauses, Replayed]]:
    """Cause the events of the benchmark, and check after each what was restored."""
    bracket = application.prepare_event()
    for event, pauses in run_events(application.run):
        replayed = application.check_restores(bracket)
        yield event, pauses, replayed
        if event != KILLED:
            bracket = application.prepare_event()


def describe(event: str, pauses: Pauses, replayed: Replayed, bounds: tuple[float, float]) -> str:
    moved_s = pauses.moved_s or 0.0
    return (
        f"{event}: stayed {pauses.stayed_s * 1000:.0f} ms (bound {bounds[0] * 1000:.0f}), "
        f"{pauses.moved_count} moved {moved_s * 1000:.0f} ms (bound {bounds[1] * 1000:.0f}), "
        f"before it {pauses.quiet_s * 1000:.0f} ms; {replayed.promoted_count} standbys promoted, "
        f"{replayed.record_count} records replayed"
    )


@pytest.mark.sampled(1, by="broker")
def test_partitions_stand_still_shortly_and_standbys_are_promoted_with_what_they_have(
    broker: Broker, unique: Callable[[str], str], memory_path: Path
) -> None:
    settings = make_settings(broker.bootstrap_servers, unique("pauses"))
    with start_application("millrace", settings, memory_path, KEYS) as run:
        application = Application(run, settings)
        noise = measure_noise(run, settings, memory_path)
        print(f"\nnoise: {noise.pause_s * 1000:.0f} ms; a worker starts in {noise.start_s:.1f} s")
        too_long = []
        for event, pauses, replayed in measure_events(application):
            bounds = list_bounds(event, noise)
            print(line := describe(event, pauses, replayed, bounds))
            assert pauses.moved_s is not None, line
            if event in (ADDED, STOPPED, KILLED):
                assert replayed.promoted_count >= pauses.moved_count, line
            if pauses.stayed_s > bounds[0] or pauses.moved_s > bounds[1]:
                too_long.append(line)
        run.finish()
    assert not too_long


def test_a_promotion_that_ignores_its_standby_is_seen(
    embedded: EmbeddedProcess, tmp_path: Path
) -> None:
    settings = make_settings(embedded.bootstrap_servers, "ignored")
    bug = promotions_begin_with_nothing.__name__
    program = (sys.executable, "-m", "tests.integration.planted_rebalance_worker", bug)
    workers = {"one", "two"}
    with start_application(
        "millrace", settings, tmp_path, KEYS, workers=workers, program=program
    ) as run:
        application = Application(run, settings)
        bracket = application.prepare_event()
        run.measure_event("two", lambda: run.fleet.stop_worker("two"), {"one"})
        with pytest.raises(AssertionError, match=r"began at 0, below \d+"):
            application.check_restores(bracket)
        run.finish()
