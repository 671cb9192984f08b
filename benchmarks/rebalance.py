"""Measure how long partitions stand still when workers come, go, die and come back.

    python -m benchmarks.rebalance [--broker embedded|kafka|host:port] [--systems millrace,...]
                                   [--protocols classic,streams] [--megabytes 1024] [--quick]

A stateful count runs on 4 workers and 16 partitions under a steady load. A worker is added, one is
stopped, one is killed with `kill -9`, one is killed and started again at once. A pause is the
longest time between two committed results of a partition, as a consumer sees them. Every result is
checked as it comes: each key counts up by one. A run with a wrong result is void. Both protocols of
groups have the same session, heartbeats and standby tasks.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple
from uuid import uuid4

import typer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks.fleet import MILLRACE, SYSTEMS, Fleet, FleetSettings
from benchmarks.pauses import ResultWatch, SteadyLoad, key_of
from benchmarks.rebalance_worker import COUNT_BYTES
from benchmarks.recorded import record
from benchmarks.restore_log import count_restored, read_restores
from benchmarks.streams_group import configure_group
from state.rocksdb import RocksDisk
from tests.brokers import EmbeddedProcess
from tests.changelog_offsets import account_for_changelogs
from tests.kafka.server import RealKafka

PARTITIONS = 16
WORKERS = ("one", "two", "three", "four")
VALUE_BYTES = 1_000
RECORDS_PER_S = 800
PROTOCOLS = ("classic", "streams")
SESSION_MS, HEARTBEAT_MS, PROBING_MS = 6_000, 200, 5_000
# Kafka's least for a streams group are 45 s and 5 s.
BROKER_SETTINGS = {
    "group.streams.min.session.timeout.ms": str(SESSION_MS),
    "group.streams.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
}
ACCEPTABLE_LAG = 10_000
ADDED, RESTARTED = "a worker is added", "killed, restarted in place"
STOPPED, KILLED = "a worker is stopped", "a worker is killed"
_QUIET_S, _SETTLE_S, _WAIT_S = 4.0, 300.0, 300.0
_TIMESTAMP_BYTES = 8

console = Console(width=110)


class Pauses(NamedTuple):
    """Holds the longest pauses in s of one event, and how many partitions have moved.

    `quiet_s` is the longest of any partition in the seconds before the event.
    """

    quiet_s: float
    stayed_s: float
    moved_s: float | None
    moved_count: int


class Run:
    """Runs an application under load, through events, to results and stores that are checked."""

    def __init__(
        self, settings: FleetSettings, fleet: Fleet, watch: ResultWatch, load: SteadyLoad
    ) -> None:
        self.fleet = fleet
        self.watch = watch
        self.settings = settings
        self._load = load
        self._settled_s = (settings.session_ms + settings.probing_ms) / 1000
        """A rebalance that is still to come comes within this time."""

    def wait_until_settled(self, workers: set[str], since_s: float) -> float:
        """Wait until no partition changes its worker any more, and return when the last had.

        Raises: RuntimeError if partitions are without results, or owned by a worker that is gone.
        """
        deadline = time.monotonic() + _SETTLE_S
        owners, changed_at_s = self.watch.owners(), time.monotonic()
        while time.monotonic() < deadline:
            self.fleet.check_running()
            time.sleep(0.05)
            now = self.watch.owners()
            if now != owners:
                owners, changed_at_s = now, time.monotonic()
            quiet_s = time.monotonic() - max(changed_at_s, since_s)
            flows = self.watch.seconds_since_result() < 1.0
            if flows and set(owners) == workers and quiet_s > self._settled_s:
                return changed_at_s
        raise RuntimeError(f"partitions are processed by {owners} after {_SETTLE_S} s")

    def measure_event(self, subject: str, event: Callable[[], None], workers: set[str]) -> Pauses:
        """Cause an event, wait until the application has settled, and return the pauses.

        What the `subject` of the event has processed counts as moved, even if it gets it back.
        """
        before_s = time.monotonic()
        event()
        self.wait_until_settled(workers, time.monotonic())
        after_s = time.monotonic()
        stayed: list[float] = []
        moved: list[float] = []
        for partition in range(PARTITIONS):
            pause = self.watch.find_longest_pause(partition, before_s, after_s)
            owners = self.watch.owners_since(partition, before_s)
            (moved if subject in owners or len(owners) > 1 else stayed).append(pause)
        # A partition that resumed late after the event before has paused because of that.
        quiet = [
            self.watch.find_longest_pause(
                partition, before_s - _QUIET_S, before_s - 1.0, is_begun_within=True
            )
            for partition in range(PARTITIONS)
        ]
        return Pauses(max(quiet), max(stayed, default=0.0), max(moved, default=None), len(moved))

    def finish(self) -> None:
        """Stop the load and the workers. Raises RuntimeError for a wrong result or store."""
        self._load.stop_writing()
        wait_for_results(self.watch, self._load.sent)
        owners = self.watch.owners()
        for name in set(owners):
            self.fleet.stop_worker(name)
        if self.fleet.system == "millrace":
            check_stores(self.fleet, self.settings.application, owners, self._load.sent)


def run_events(run: Run) -> Iterator[tuple[str, Pauses]]:
    """Run the events one after the other, and yield each with its pauses."""
    all_workers, fleet = set(WORKERS), run.fleet
    yield ADDED, run.measure_event("four", lambda: fleet.start_worker("four"), all_workers)

    def restart_in_place() -> None:
        fleet.kill_worker("three")
        fleet.start_worker("three")

    yield RESTARTED, run.measure_event("three", restart_in_place, all_workers)
    without_four = all_workers - {"four"}
    yield STOPPED, run.measure_event("four", lambda: fleet.stop_worker("four"), without_four)
    yield KILLED, run.measure_event("two", lambda: fleet.kill_worker("two"), {"one", "three"})


@contextmanager
def start_application(
    system: str,
    settings: FleetSettings,
    directory: Path,
    keys: int,
    *,
    workers: Collection[str] = WORKERS[:3],
    program: Sequence[str] = MILLRACE,
    replicas: int = 1,
) -> Iterator[Run]:
    """Start an application, whose stores have so many keys a partition, and load it.

    `replicas`: on how many brokers each partition is.
    """
    servers, application = settings.servers, settings.application
    if settings.protocol == "streams":
        configure_group(
            servers,
            application,
            standbys=settings.standbys,
            session_ms=settings.session_ms,
            heartbeat_ms=settings.heartbeat_ms,
        )
    fill_topics(servers, application, keys, replicas)
    with ExitStack() as stack:
        fleet = stack.enter_context(closing(Fleet(system, settings, directory, program)))
        watch = stack.enter_context(ResultWatch(servers, f"{application}-out", PARTITIONS))
        for name in sorted(workers):
            fleet.start_worker(name)
        load = stack.enter_context(
            SteadyLoad(
                servers,
                f"{application}-in",
                partitions=PARTITIONS,
                keys=keys,
                records_per_s=RECORDS_PER_S,
            )
        )
        run = Run(settings, fleet, watch, load)
        run.wait_until_settled(set(workers), time.monotonic())
        yield run


def measure_system(
    system: str, protocol: str, servers: str, directory: Path, megabytes: int, standbys: int
) -> dict[str, Pauses]:
    """Measure one system with one protocol. Raises RuntimeError for a wrong result."""
    application = f"{system}-{protocol}-{uuid4().hex[:6]}"
    keys = max(megabytes * 1_000_000 // VALUE_BYTES // PARTITIONS, 50)
    times = (PROBING_MS, SESSION_MS, HEARTBEAT_MS)
    settings = FleetSettings(
        servers, application, VALUE_BYTES, standbys, *times, ACCEPTABLE_LAG, protocol
    )
    with start_application(system, settings, directory, keys) as run:
        found = dict(run_events(run))
        run.finish()
    if system == "millrace":
        states = {name: directory / name for name in WORKERS}
        restored = {name: count_restored(read_restores(state)) for name, state in states.items()}
        console.print(f"records restored by the workers: {restored}")
    return found


def wait_for_results(watch: ResultWatch, sent: dict[bytes, int]) -> None:
    """Wait until there is a result of every record. Raises RuntimeError for a wrong one."""
    deadline = time.monotonic() + _WAIT_S
    while dict(watch.counts) != dict(sent):
        if watch.violations or time.monotonic() > deadline:
            missing = sum(sent.values()) - sum(watch.counts.values())
            raise RuntimeError(f"wrong results: {watch.violations[:5]}, {missing} records missing")
        time.sleep(0.1)
    if watch.violations:
        raise RuntimeError(f"wrong results: {watch.violations[:5]}")


def check_stores(fleet: Fleet, application: str, owners: list[str], sent: dict[bytes, int]) -> None:
    """Raise RuntimeError unless the stores of the last owners hold each key's count."""
    for partition, owner in enumerate(owners):
        disk = RocksDisk(fleet.state_of(owner) / application / f"0_{partition}" / "sums")
        counts = {
            key: int.from_bytes(value[_TIMESTAMP_BYTES:][:COUNT_BYTES], "big")
            for key, value in disk.range(None, None)
        }
        disk.close()
        wrong = {
            key: (counts.get(key), count)
            for key, count in sent.items()
            if key.startswith(b"%d:" % partition) and counts.get(key) != count
        }
        if wrong:
            raise RuntimeError(f"store of partition {partition}: {len(wrong)} wrong, {wrong}")


def fill_topics(servers: str, application: str, keys: int, replicas: int = 1) -> None:
    """Create the topics, and a changelog with a count of zero for each key."""
    admin = AdminClient({"bootstrap.servers": servers})
    changelog = f"{application}-sums-changelog"
    topics = [NewTopic(f"{application}-{each}", PARTITIONS, replicas) for each in ("in", "out")]
    topics.append(NewTopic(changelog, PARTITIONS, replicas, config={"cleanup.policy": "compact"}))
    for created in admin.create_topics(topics).values():
        created.result(30)
    queue = {"linger.ms": 20, "queue.buffering.max.kbytes": 200_000, "batch.size": 1_000_000}
    producer = Producer({"bootstrap.servers": servers, **queue})
    value = bytes(VALUE_BYTES)
    for number in range(keys):
        for partition in range(PARTITIONS):
            try:
                producer.produce(changelog, value, key_of(partition, number), partition)
            except BufferError:
                producer.flush(60)
                producer.produce(changelog, value, key_of(partition, number), partition)
        producer.poll(0)
    if producer.flush(_WAIT_S):
        raise RuntimeError("the changelog was not written")
    account_for_changelogs(servers, application, f"{application}-in", {"sums": changelog})


def print_table(title: str, found: dict[str, dict[str, Pauses]]) -> None:
    """Print the pauses of each event, the systems with their protocols below each other."""
    table = Table(title=title)
    table.add_column("event")
    table.add_column("system, protocol")
    for column in ("quiet", "stayed", "moved", "partitions moved"):
        table.add_column(column, justify="right")
    for event in next(iter(found.values())):
        for way, pauses in found.items():
            each = pauses[event]
            moved = "-" if each.moved_s is None else f"{each.moved_s * 1000:,.0f} ms"
            quiet, stayed = (f"{s * 1000:,.0f} ms" for s in (each.quiet_s, each.stayed_s))
            table.add_row(event, way, quiet, stayed, moved, str(each.moved_count))
        table.add_section()
    console.print(table)


def main(
    broker: Annotated[str, typer.Option(help="embedded, kafka, or host:port.")] = "kafka",
    systems: Annotated[str, typer.Option(help="Which systems, with commas.")] = ",".join(SYSTEMS),
    protocols: Annotated[str, typer.Option(help="Which group protocols.")] = ",".join(PROTOCOLS),
    megabytes: Annotated[int, typer.Option(help="State in all, in megabytes.")] = 1_024,
    standbys: Annotated[int, typer.Option(help="Standby tasks of each task.")] = 1,
    quick: Annotated[bool, typer.Option(help="32 MB of state.")] = False,
) -> None:
    """Measure the pauses of each system, and print them beside each other."""
    size = 32 if quick else megabytes
    with ExitStack() as stack:
        servers = broker
        if broker in ("embedded", "kafka"):
            process = (EmbeddedProcess if broker == "embedded" else RealKafka)(BROKER_SETTINGS)
            stack.callback(process.close)
            process.start()
            servers = process.bootstrap_servers
        found = {}
        for protocol in protocols.split(","):
            for system in systems.split(","):
                directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-"))
                console.print(f"{system}, {protocol}; load {os.getloadavg()[0]:.1f}")
                found[f"{system}, {protocol}"] = measure_system(
                    system, protocol, servers, Path(directory), size, standbys
                )
        for system, pauses in found.items():
            for event, each in pauses.items():
                record("rebalance", f"{event}: stayed", system, "s", [each.stayed_s])
                if each.moved_s is not None:
                    record("rebalance", f"{event}: moved", system, "s", [each.moved_s])
        print_table(
            f"Longest pause of a partition, {size} MB of state, {standbys} standbys, broker "
            f"{broker}; a killed worker's session is {SESSION_MS} ms",
            found,
        )


if __name__ == "__main__":
    typer.run(main)
