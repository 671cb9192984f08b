"""Test reads of standbys that may be behind: what is known of their lag, and waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from streams import App, serdes
from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.graph.nodes import StoreSpec
from streams.queries.changelog_ends import ChangelogEnds
from streams.queries.local_stores import LocalStores
from streams.queries.stale_bounds import StaleBounds
from streams.queries.standby_reads import StandbyReader
from streams.queries.store_reads import StoreRead
from tests.processes import HANG_LIMIT_S
from tests.unit.streams.queries.served import serve_client
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import (
    CHANGELOG,
    World,
    assign_roles,
    build_counting_topology,
)

LAG_0 = StaleBounds(max_lag=0)


@contextmanager
def follow_two_partitions(
    path: Path, sampled_at_s: Callable[[], float], *, fetch_s: float = 0.0
) -> Iterator[LocalStores]:
    """Provide the stores of a worker that follows two tasks of another one, and lacks nothing.

    Brokers take `fetch_s` to tell the ends of changelogs.
    """
    topology = build_counting_topology()
    kafka = Kafka({"in": 2, "out": 1, CHANGELOG: 2})
    first, second = (
        World(topology, path / name, kafka=kafka, thread_id=name, partitions=2)
        for name in ("a-first", "a-second")
    )
    first.member.assign(assign_roles([0, 1]))
    second.member.assign(assign_roles(standby=[0, 1]))
    for partition in (0, 1):
        first.load("1", "2", key=f"key-{partition}", partition=partition)
    for _ in range(10):
        first.turn(1)
        second.turn(1)

    def fetch_ends(changelogs: Sequence[Partition], timeout_s: float) -> Mapping[Partition, int]:
        time.sleep(fetch_s)
        return {each: kafka.logs[each].high_watermark for each in changelogs}

    with ThreadPoolExecutor(1) as executor:

        def create_reader(spec: StoreSpec, prefix: str) -> StandbyReader:
            inputs = CommittedOffsets({}, [])
            ends = ChangelogEnds(fetch_ends, lambda _: inputs, sampled_at_s, executor)
            return StandbyReader(
                spec, prefix, lambda: second.loop.standby_tasks, ends, second.clock.now_ms
            )

        yield LocalStores(
            topology,
            list_tasks=list,
            list_assignments=list,
            fetch_partition_counts=lambda: {"in": 2},
            monotonic_s=time.monotonic,
            now_ms=second.clock.now_ms,
            session_timeout_s=45.0,
            create_standby_reader=create_reader,
        )


def test_the_first_request_that_bounds_the_lag_waits_until_it_is_known(tmp_path: Path) -> None:
    with (
        follow_two_partitions(tmp_path, time.monotonic, fetch_s=0.05) as local,
        serve_client(SimpleNamespace(local=local, is_stopping=False)) as client,
    ):
        found = client.get("/stores/c?scope=local&limit=9&stale-ok-lag=0")
    assert found.status_code == 200, found.text
    assert len(found.content.splitlines()) == 2


def test_the_lags_of_all_stores_are_sampled_before_any_is_waited_for() -> None:
    """Otherwise a store whose sample takes all of the time leaves none for those behind it."""
    app = App("a")
    grouped = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    for name in ("c", "d"):
        grouped.count(store=name)
    is_last_requested = threading.Event()

    def await_last_request() -> None:
        assert is_last_requested.wait(10)

    def request_sample(name: str) -> Future[None]:
        if name == "d":
            is_last_requested.set()
        sampling = executor.submit(await_last_request)
        samplings.append(sampling)
        return sampling

    samplings: list[Future[None]] = []
    with ThreadPoolExecutor(1) as executor:
        local = LocalStores(
            app.topology(),
            list_tasks=list,
            list_assignments=list,
            fetch_partition_counts=lambda: {"in": 2},
            monotonic_s=time.monotonic,
            now_ms=lambda: 0,
            session_timeout_s=45.0,
            create_standby_reader=lambda spec, _: cast(
                "Any", SimpleNamespace(request_sample=lambda: request_sample(spec.name))
            ),
        )
        local.sample_standby_lags(["c", "d"], HANG_LIMIT_S)
        assert [each.exception() for each in samplings if each.done()] == [None, None]


def test_a_lag_that_was_sampled_is_told(tmp_path: Path) -> None:
    with follow_two_partitions(tmp_path, time.monotonic) as local:
        assert local.measure_standby_lags("c") == {0: None, 1: None}
        local.sample_standby_lags(["c"], HANG_LIMIT_S)
        assert local.measure_standby_lags("c") == {0: 0, 1: 0}


def test_what_is_known_of_one_partition_is_known_of_all_that_are_followed(tmp_path: Path) -> None:
    with follow_two_partitions(tmp_path, lambda: 100.0) as local:  # no second sample is taken
        for partition in (0, 1):
            answer = local.read(
                "c", StoreRead(), partitions=[partition], stale_ok=LAG_0, ends_wait_s=10.0
            )
            assert [row.key for row in answer.rows] == [f"key-{partition}"]
