"""Compare groups on the embedded broker and on Kafka: rebalances, heartbeats, commits, loading.

    python -m benchmarks.groups [--quick] [--only embedded|kafka] [--protocols classic] [--rounds 3]

Both brokers run at the same time and are measured in turns, each measurement by a client process of
its own (`benchmarks.group_load`). Three parts:

- By Kafka's defaults: both brokers wait 3 s before a new classic group's first generation, and 3 s
  more if a member has joined meanwhile, and 1 s between two target assignments; members heartbeat
  each 3 s (classic) or 5 s (consumer). The time is that of those intervals.
- As fast as can be: no initial delay, no pause between two assignments, heartbeats each 100 ms.
  Also the cost of heartbeats and of commits.
- Start on the offsets of many groups, until the last shard answers.

A round that is not counted comes first, for the JVM's compilers. Figures are medians of the rounds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import group_wire as wire
from benchmarks.broker_rivals import JVM_FLAGS, Rival, create_topic, run_brokers
from benchmarks.figures import (
    CPU_EACH,
    KILOBYTES,
    KINDS,
    LATENCY,
    MEMORY,
    RATE,
    SECONDS,
    Figures,
    run_client,
    table,
)
from benchmarks.group_load import (
    COMMITTED_PARTITIONS,
    COMMITTERS,
    PIPELINED,
    GroupLoad,
    command,
    filled,
)
from coordinator.shard.placement import partition_for
from tests.conformance.calls import topic_id
from tests.conformance.wire import Api, Client
from tests.kafka.server import missing

PROTOCOLS = ("classic", "consumer", "streams")
PARTS = "default,fast,start"
BY_DEFAULT = ", by Kafka's defaults"
SMALL, LARGE = (10, 900), (200, 2_000)  # members, partitions
# Members and tasks of a streams group: the member that joins later gets a task of its own.
THOUSAND, HUNDRED = (999, 1_000), (99, 100)
WITH_ENDPOINTS = ", with endpoints"
CLASSIC_INTERVAL_MS = 3_000  # clients' default; the other protocols' is the broker's to say
FAST_INTERVAL_MS = 100
STREAMS_INTERVAL_MS = 500  # so that a thousand members send as much as 200 consumers
DEFAULT = {  # Kafka's; ours are 0
    "group.initial.rebalance.delay.ms": "3000",
    "group.consumer.assignment.interval.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "3000",
    "group.streams.assignment.interval.ms": "1000",
}
FAST = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": str(FAST_INTERVAL_MS),
    "group.consumer.min.heartbeat.interval.ms": str(FAST_INTERVAL_MS),
    "group.consumer.assignment.interval.ms": "0",
    "group.streams.heartbeat.interval.ms": str(STREAMS_INTERVAL_MS),
    "group.streams.min.heartbeat.interval.ms": str(STREAMS_INTERVAL_MS),
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
HEARTBEATS_PER_S = 2_000  # where their latency is measured
SHARDS = 50  # Kafka's default, and ours
LOADING = frozenset({14, 15, 16})
START_TIMEOUT_S = 120.0
COMMITTING = {
    "alone": "one member",
    "together": f"{COMMITTERS} members",
    "pipelined": f"{COMMITTERS} members, {PIPELINED} in flight",
}

console = Console(width=110)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Says how many heartbeats, commits, groups and rounds are measured, and which parts."""

    heartbeats: int
    commits: int
    groups: int
    rounds: int
    warm_ups: int
    parts: str
    streams: tuple[int, int]  # members and tasks of a streams group


FULL = Size(
    heartbeats=100_000,
    commits=40_000,
    groups=10_000,
    rounds=3,
    warm_ups=1,
    parts=PARTS,
    streams=THOUSAND,
)
QUICK = Size(
    heartbeats=10_000,
    commits=4_000,
    groups=2_000,
    rounds=1,
    warm_ups=0,
    parts="fast,start",
    streams=HUNDRED,
)


class Bench:
    """Measures groups on brokers, and adds what it measures to the figures."""

    def __init__(self, protocols: Sequence[str], size: Size, figures: Figures) -> None:
        self.protocols = protocols
        self.size = size
        self.figures = figures
        self._groups = 0

    def create_load(self, broker: Rival, what: str, partitions: int, **more: object) -> GroupLoad:
        """Create the description of a measurement with a group of its own."""
        self._groups += 1
        topic = f"topic-{partitions}"
        with Client(broker.bootstrap_servers) as client:
            found = str(topic_id(client, topic))
        load = GroupLoad(
            what=what,
            servers=broker.bootstrap_servers,
            pid=broker.pid,
            group=f"{what}-{self._groups}",
            topic=topic,
            topic_id=found,
            partitions=partitions,
        )
        return replace(load, **more)  # type: ignore[arg-type]

    def measure_by_default(self, brokers: Sequence[Rival]) -> None:
        """Measure how soon groups are stable with Kafka's default intervals."""
        for _ in range(self.size.rounds):
            for protocol in self.protocols:
                if protocol == "streams":
                    self._measure_streams_groups(brokers, BY_DEFAULT)
                    continue
                self._measure_clients(brokers, protocol, BY_DEFAULT)
                self._measure_group(brokers, protocol, LARGE, CLASSIC_INTERVAL_MS, BY_DEFAULT)

    def measure_fast(self, brokers: Sequence[Rival]) -> None:
        """Measure rebalances, heartbeats and commits with the shortest intervals."""
        for number in range(self.size.warm_ups + self.size.rounds):
            counts = number >= self.size.warm_ups
            for protocol in self.protocols:
                if protocol == "streams":
                    self._measure_streams_groups(brokers, "", counts=counts)
                    continue
                # In the classic protocol it is chance which member makes the first generation,
                # and whether the others wait for its next heartbeat.
                if counts and protocol == "consumer":
                    self._measure_clients(brokers, protocol, "")
                for numbers in (SMALL, LARGE):
                    self._measure_group(
                        brokers, protocol, numbers, FAST_INTERVAL_MS, "", counts=counts
                    )
                self._measure_commits(brokers, protocol, counts=counts)

    def _measure_streams_groups(
        self, brokers: Sequence[Rival], suffix: str, *, counts: bool = True
    ) -> None:
        """Measure a streams group without and with endpoints, which each answer may list."""
        numbers, interval_ms = self.size.streams, STREAMS_INTERVAL_MS
        self._measure_group(brokers, "streams", numbers, interval_ms, suffix, counts=counts)
        if not suffix:
            self._measure_group(
                brokers, "streams", numbers, interval_ms, WITH_ENDPOINTS, counts=counts
            )

    def _measure_clients(self, brokers: Sequence[Rival], protocol: str, suffix: str) -> None:
        members, partitions = SMALL
        for broker in brokers:
            load = self.create_load(
                broker, "clients", partitions, protocol=protocol, members=members
            )
            seconds = run_client(command(load))["start_s"]
            line = f"{protocol}, {members} of librdkafka's consumers: all at once{suffix}"
            self.figures.add(line, SECONDS, broker.kind, seconds)

    def _measure_group(
        self,
        brokers: Sequence[Rival],
        protocol: str,
        numbers: tuple[int, int],
        interval_ms: int,
        suffix: str,
        *,
        counts: bool = True,
    ) -> None:
        members, partitions = numbers
        heartbeats = 0 if numbers == SMALL or suffix else self.size.heartbeats
        for broker in brokers:
            load = self.create_load(
                broker,
                "group",
                partitions,
                protocol=protocol,
                members=members,
                interval_ms=interval_ms,
                count=heartbeats,
                rate=HEARTBEATS_PER_S,
                has_endpoints=suffix == WITH_ENDPOINTS,
            )
            found = run_client(command(load))
            if counts:
                self._add_group(broker.kind, f"{protocol}, {members} members", suffix, found)

    def _add_group(self, kind: str, who: str, suffix: str, found: dict[str, float]) -> None:
        for key, what in (("start", "all at once"), ("join", "one more"), ("leave", "one leaves")):
            self.figures.add(f"{who}: {what}{suffix}", SECONDS, kind, found[f"{key}_s"])
        if "answers_mb" in found:
            longest, together = found["longest_answer_kb"], found["answers_mb"]
            self.figures.add(f"{who}: longest answer{suffix}", KILOBYTES, kind, longest)
            self.figures.add(f"{who}: all answers{suffix}", MEMORY, kind, together)
        if "heartbeats_per_s" in found:
            add, line = self.figures.add, f"{who}: heartbeats"
            add(line, RATE, kind, found["heartbeats_per_s"])
            add(f"{line}: broker's CPU for each", CPU_EACH, kind, found["heartbeat_cpu_us"])
            for share in ("p50", "p99"):
                what = f"{line} {share} at {HEARTBEATS_PER_S:,}/s"
                add(what, LATENCY, kind, found[f"heartbeat_{share}_ms"])

    def _measure_commits(self, brokers: Sequence[Rival], protocol: str, *, counts: bool) -> None:
        for broker in brokers:
            load = self.create_load(
                broker, "commits", SMALL[1], protocol=protocol, count=self.size.commits
            )
            found = run_client(command(load))
            for key, who in COMMITTING.items():
                line = f"{protocol}: commits of {COMMITTED_PARTITIONS} partitions by {who}"
                if counts:
                    self.figures.add(line, RATE, broker.kind, found[f"{key}_per_s"])
                    cpu = f"{line}: broker's CPU for each"
                    self.figures.add(cpu, CPU_EACH, broker.kind, found[f"{key}_cpu_us"])

    def measure_starts(self, brokers: Sequence[Rival]) -> None:
        """Measure how soon a broker that has the offsets of many groups answers after its start."""
        loads = {}
        for broker in brokers:
            load = self.create_load(broker, "fill", SMALL[1], count=self.size.groups)
            loads[broker.kind] = replace(load, what="verify")
            run_client(command(load))
            broker.stop()
        for _ in range(self.size.rounds):
            for broker in brokers:  # Only the broker that is measured runs.
                load = loads[broker.kind]
                begin = time.perf_counter()
                broker.restart()
                listening = time.perf_counter()
                found = asyncio.run(wait_until_loaded(broker.bootstrap_servers, filled(load)))
                end = time.perf_counter()
                if not all(found.values()):
                    raise RuntimeError(f"{broker.kind} has lost offsets: {found}")
                line = f"start with the offsets of {load.count:,} groups"
                self.figures.add(line, SECONDS, broker.kind, end - begin)
                waits = f"{line}: from the first answer to the last shard's"
                self.figures.add(waits, SECONDS, broker.kind, end - listening)
                run_client(command(replace(load, servers=broker.bootstrap_servers)))
                broker.stop()


def prepare_broker(broker: Rival, partitions: Sequence[int]) -> None:
    """Create topics with these numbers of partitions, and wait for the group coordinator."""
    for count in partitions:
        create_topic(broker, f"topic-{count}", count)
    with Client(broker.bootstrap_servers) as client:
        client.send(Api.FIND_COORDINATOR, 2, key="any", key_type=0)
    names = (f"any-{number}" for number in range(SHARDS * SHARDS))
    asyncio.run(wait_until_loaded(broker.bootstrap_servers, names))


async def wait_until_loaded(servers: str, groups: Iterable[str]) -> dict[str, dict[int, int]]:
    """Wait until every shard has loaded, by fetching a group's offsets of each; return these."""
    group_of_shard = {partition_for(name, SHARDS): name for name in groups}
    offsets = {}
    connection = await wire.connect(servers)
    async with asyncio.timeout(START_TIMEOUT_S):
        for name in group_of_shard.values():
            while name not in offsets:
                answer = await connection.call(wire.offset_fetch([name]))
                code, found = wire.fetched_offsets(answer)[name]
                if not code:
                    offsets[name] = found
                elif code in LOADING:
                    await asyncio.sleep(0.005)
                else:
                    raise RuntimeError(f"{name}: error {code}")
    connection.close()
    return offsets


def bench(
    quick: Annotated[bool, typer.Option(help="Little of everything, once: for CI.")] = False,
    only: Annotated[str, typer.Option(help="embedded or kafka; default both.")] = "",
    protocols: Annotated[str, typer.Option(help="One of them; default all.")] = "",
    parts: Annotated[str, typer.Option(help=f"{PARTS}; default all, quick without default.")] = "",
    rounds: Annotated[int, typer.Option(help="Rounds; default 3, quick 1.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Write the medians as JSON.")] = None,
) -> None:
    """Run the comparison of groups and print its figures."""
    for given, known in ((only, KINDS), (protocols, PROTOCOLS)):
        if given not in ("", *known):
            raise typer.BadParameter(f"{given}: give one of {', '.join(known)}")
    size = QUICK if quick else FULL
    size = replace(size, rounds=rounds or size.rounds, parts=parts or size.parts)
    kinds = (only,) if only else KINDS
    reason = missing() if "kafka" in kinds else None
    if reason:
        raise typer.BadParameter(f"{reason}; or give --only embedded")
    figures = Figures()
    benchmark = Bench((protocols,) if protocols else PROTOCOLS, size, figures)
    measures = {
        "default": (DEFAULT, benchmark.measure_by_default),
        "fast": (FAST, benchmark.measure_fast),
        "start": ({}, benchmark.measure_starts),  # on brokers whose log has nothing else
    }
    try:
        for part, (settings, measure) in measures.items():
            if part in size.parts.split(","):
                with run_brokers(kinds, settings) as brokers:
                    for broker in brokers:
                        prepare_broker(broker, (SMALL[1], LARGE[1], size.streams[1]))
                    measure(brokers)
    finally:
        console.print(table(figures, f"groups, median of {size.rounds} rounds"))
        console.print(f"Kafka's JVM: {' '.join(JVM_FLAGS)}")
        figures.record("groups")
        if output is not None:
            figures.write(output)


if __name__ == "__main__":
    typer.run(bench)
