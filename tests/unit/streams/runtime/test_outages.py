"""Test that a thread goes on after an outage, however long it was, and does nothing in it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from streams.errors import OutcomeUnknown
from streams.membership.broker_outage import BrokerOutage
from streams.membership.connection import ConnectionLost
from tests.unit.streams.runtime.fakes import Clock
from tests.unit.streams.runtime.tasks.test_recovery import assert_exact
from tests.unit.streams.runtime.world import World, build_counting_topology

GUARANTEES = ["exactly_once_v2", "exactly_once", "at_least_once"]
TASK_TIMEOUT_MS = 60_000
OUTAGE_S = 600.0


class Outage:
    """Takes the brokers of a world away for a time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.until_s = 0.0
        self.leaderless_until_s = 0.0
        """Until when no leader of the output's only partition is known."""
        self.known = BrokerOutage("kafka:9092", clock, self._open, topics=["out"])

    def _open(self, address: tuple[str, int] | None) -> Any:
        if self.clock.elapsed_s < self.until_s:
            raise ConnectionLost("connection refused")
        return self

    def negotiate_version(self, api_key: int, version_max: int) -> int:
        return version_max

    def send_request(self, request: Any) -> Any:
        is_away = self.clock.elapsed_s < self.leaderless_until_s
        partition = SimpleNamespace(
            partition_index=0,
            leader_id=-1 if is_away else 1,
            error_code=ErrorCode.leader_not_available if is_away else ErrorCode.none,
            replica_nodes=(1,),
        )
        broker = SimpleNamespace(node_id=1, host="kafka", port=9092)
        topic = SimpleNamespace(name="out", partitions=[partition])
        return SimpleNamespace(brokers=[broker], topics=[topic])

    def close(self) -> None:
        pass

    def begin(self) -> None:
        self.until_s = self.clock.elapsed_s + OUTAGE_S


def load_world(state: Path, guarantee: str, commit_every_ms: int = 0) -> tuple[World, Outage]:
    clock = Clock()
    outage = Outage(clock)
    world = World(
        build_counting_topology(),
        state,
        guarantee=guarantee,
        commit_every_ms=commit_every_ms,
        task_timeout_ms=TASK_TIMEOUT_MS,
        outage=outage.known,
        clock=clock,
    )
    world.stop.looks_left = 20_000
    world.load(*map(str, range(30)))
    return world, outage


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_thread_with_records_in_flight_goes_on_after_ten_minutes(
    tmp_path: Path, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    world, outage = load_world(tmp_path, guarantee)
    world.script.fail("producer.flush", OutcomeUnknown("2 not delivered"), at=2)
    seen: list[list[str]] = []

    def is_done() -> bool:
        if world.script.calls.count("producer.flush") == 2 and not outage.until_s:
            outage.begin()
        if outage.known.measure_duration_s() > 1 and not seen:
            seen.append(list(world.script.calls))
        if outage.known.measure_duration_s() > OUTAGE_S - 2:
            seen[1:] = [list(world.script.calls)]
        return world.consumed() and world.clock.elapsed_s > outage.until_s > 0

    world.run_until(is_done)
    (at_begin, at_end) = seen
    assert at_end == at_begin, "something was polled or tried in the outage"
    if guarantee != "at_least_once":
        assert_exact(world)
    lines = [each for each in caplog.messages if "starts over" in each]
    task = "task 0_0: " if guarantee == "exactly_once" else ""
    cause = "no broker answers at kafka:9092: connection refused"
    assert lines == [
        f"thread 0 starts over from what is committed: {cause} ({task}2 not delivered)"
    ]
    assert world.loop.counters.recoveries == 1


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_what_is_uncommitted_is_given_up_after_the_request_time_out(
    tmp_path: Path, guarantee: str
) -> None:
    world, outage = load_world(tmp_path, guarantee, commit_every_ms=400)

    def is_done() -> bool:
        if any(task.commit_needed for task in world.loop.tasks.values()) and not outage.until_s:
            outage.begin()
            assert not outage.known.try_reach_any_broker()
        return world.consumed() and world.clock.elapsed_s > outage.until_s > 0

    world.run_until(is_done)
    if guarantee != "at_least_once":
        assert_exact(world)
    assert world.loop.counters.recoveries == 1


def test_a_task_that_fails_while_brokers_answer_ends_its_thread(tmp_path: Path) -> None:
    world, _ = load_world(tmp_path, "exactly_once_v2")
    for attempt in range(1, 1_000):
        world.script.fail("producer.commit_transaction", OutcomeUnknown("no answer"), at=attempt)
    with pytest.raises(Exception, match=r"no commit for 60000 ms \(task_timeout_ms\): no answer"):
        world.run_until(world.consumed)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_thread_waits_for_the_leader_of_an_output_for_ten_minutes(
    tmp_path: Path, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    world, outage = load_world(tmp_path, guarantee)
    world.stop.looks_left = 200_000
    outage.leaderless_until_s = world.clock.elapsed_s + OUTAGE_S

    def write_in_vain() -> None:
        if world.clock.elapsed_s < outage.leaderless_until_s:
            world.script.do_before("producer.flush", write_in_vain)
            world.clock.advance_monotonic_clock(5)
            raise OutcomeUnknown("2 not delivered")

    world.script.do_before("producer.flush", write_in_vain)
    world.run_until(lambda: world.consumed() and world.clock.elapsed_s > outage.leaderless_until_s)
    if guarantee != "at_least_once":
        assert_exact(world)
    assert not outage.known.is_on
    told = [each for each in caplog.messages if "no leader answers for out[0]" in each]
    assert "(its replicas are on broker 1). Other brokers answer" in told[0]
    assert all(each.startswith("still ") for each in told[1:])
    assert 5 <= len(told) <= OUTAGE_S / 60 + 1
