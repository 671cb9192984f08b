"""Measure what it saves to read the usual commit of offsets without kio (docs/decisions/0042).

    python -m benchmarks.plain_commits [--rounds 9] [--commits 5000]

A broker in this process answers the same OffsetCommit frames of 10 partitions, once by both readers
of `coordinator.api.offset_commit` and once by kio alone, in turns. The figures are processor time
of the broker without sockets, and medians of the rounds.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks import group_wire as wire
from coordinator.api import offset_commit
from coordinator.api.router import APIS, Router
from coordinator.broker import Broker
from coordinator.config import BrokerConfig

TOPIC, PARTITIONS = "words", 10
FRAMES = 50  # Different commits of one group, as in `benchmarks.group_load`.
LENGTH_BYTES = 4

console = Console()


@contextmanager
def run_broker() -> Iterator[Broker]:
    """Load a broker from an empty directory, without a socket."""
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as directory:
        broker = Broker(BrokerConfig(data_dir=Path(directory), offsets_topic_num_partitions=1))
        broker.start_without_listening()
        try:
            broker.ensure_topics({TOPIC: PARTITIONS})
            yield broker
        finally:
            broker.close()


def create_kio_router(broker: Broker) -> Router:
    """Create a router that has kio read every request."""
    kio_alone: Any = SimpleNamespace(
        API_KEY=offset_commit.API_KEY,
        VERSIONS=offset_commit.VERSIONS,
        handle_request=offset_commit.handle_request,
        build_error_response=offset_commit.build_error_response,
    )
    return broker.create_router([kio_alone if api is offset_commit else api for api in APIS])


def measure_commits(router: Router, count: int) -> float:
    """Return the processor time of a commit, in microseconds."""
    frames = [
        wire.offset_commit(
            "group", -1, "", TOPIC, {each: 1_000 * seed + each for each in range(PARTITIONS)}
        )[LENGTH_BYTES:]
        for seed in range(FRAMES)
    ]
    answer = router.dispatch_frame(frames[0], "127.0.0.1")
    assert isinstance(answer, bytes)
    wire.check_committed(answer[LENGTH_BYTES:])
    begin = time.process_time()
    for number in range(count):
        if router.dispatch_frame(frames[number % FRAMES], "127.0.0.1") != answer:
            raise RuntimeError("a commit was refused")
    return (time.process_time() - begin) * 1_000_000 / count


async def measure_readers(rounds: int, count: int) -> dict[str, list[float]]:
    """Return the microseconds of a commit of each round, by the readers that the broker has."""
    taken: dict[str, list[float]] = {"both readers": [], "kio alone": []}
    with run_broker() as broker:
        routers = dict(zip(taken, (broker.create_router(), create_kio_router(broker)), strict=True))
        for number in range(rounds + 1):
            for name, router in routers.items():
                each_us = measure_commits(router, count)
                if number:  # the first round warms up
                    taken[name].append(each_us)
    return taken


def bench(
    rounds: Annotated[int, typer.Option(help="Rounds; the median counts.")] = 9,
    commits: Annotated[int, typer.Option(help="Commits of each round.")] = 5_000,
) -> None:
    """Measure commits by both readers and by kio alone, and print the medians."""
    taken = asyncio.run(measure_readers(rounds, commits))
    medians = {name: statistics.median(each) for name, each in taken.items()}
    for name, median in medians.items():
        low, high = min(taken[name]), max(taken[name])
        console.print(f"{name}: {median:.1f} us of a processor a commit ({low:.1f} to {high:.1f})")
    share = 1 - medians["both readers"] / medians["kio alone"]
    console.print(f"saved: {share:.0%}")


if __name__ == "__main__":
    typer.run(bench)
