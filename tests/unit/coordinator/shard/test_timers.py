"""Test that timers fire once, at their latest deadline, and only while they are set."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest
import uvloop

from coordinator.clock import SystemClock
from coordinator.event_loop import LoopScheduler
from coordinator.shard.timers import STALL_MS, KeyedTimers
from tests.unit.coordinator.fakes import FakeClock


def timers_on(clock: FakeClock) -> tuple[KeyedTimers[str], list[tuple[int, str]]]:
    fired: list[tuple[int, str]] = []
    timers: KeyedTimers[str] = KeyedTimers(
        clock, clock, lambda key: fired.append((clock.monotonic_ms(), key))
    )
    return timers, fired


def test_keys_fire_in_the_order_of_their_deadlines() -> None:
    clock = FakeClock()
    timers, fired = timers_on(clock)
    timers.set_timer("late", 30)
    timers.set_timer("early", 10)
    timers.set_timer("middle", 20)
    clock.advance(100)
    assert fired == [(10, "early"), (20, "middle"), (30, "late")]


def test_a_timer_that_is_set_again_fires_at_the_new_deadline_only() -> None:
    clock = FakeClock()
    timers, fired = timers_on(clock)
    timers.set_timer("moved out", 10)
    timers.set_timer("moved in", 50)
    timers.set_timer("moved out", 40)
    timers.set_timer("moved in", 5)
    clock.advance(100)
    assert fired == [(5, "moved in"), (40, "moved out")]


def test_a_cancelled_timer_does_not_fire_unless_it_is_set_anew() -> None:
    clock = FakeClock()
    timers, fired = timers_on(clock)
    timers.set_timer("a", 10)
    timers.cancel_timer("a")
    clock.advance(5)
    timers.set_timer("a", 10)
    clock.advance(100)
    assert fired == [(15, "a")]


def test_a_timer_may_set_and_cancel_others_when_it_fires() -> None:
    clock = FakeClock()
    fired: list[str] = []

    def fire(key: str) -> None:
        fired.append(key)
        if key == "first":
            timers.cancel_timer("second")
            timers.set_timer("third", 10)

    timers: KeyedTimers[str] = KeyedTimers(clock, clock, fire)
    timers.set_timer("first", 10)
    timers.set_timer("second", 10)
    clock.advance(100)
    assert fired == ["first", "third"]


def test_the_others_still_fire_when_one_raises() -> None:
    clock = FakeClock()
    fired: list[str] = []

    def fire(key: str) -> None:
        if key == "bad":
            raise RuntimeError("bad")
        fired.append(key)

    timers: KeyedTimers[str] = KeyedTimers(clock, clock, fire)
    timers.set_timer("bad", 10)
    timers.set_timer("good", 10)
    with pytest.raises(RuntimeError, match="bad"):
        clock.advance(10)
    clock.advance(1)
    assert fired == ["good"]


def test_one_call_is_scheduled_whatever_the_number_of_heartbeats() -> None:
    clock = FakeClock()
    timers, fired = timers_on(clock)
    for _ in range(1000):
        timers.set_timer("session", 45_000)
        clock.advance(10)
    assert clock.scheduled() == 1
    timers.cancel_all_timers()
    clock.advance(100_000)
    assert fired == []


async def stall_with_a_heartbeat_unread(*, is_sent: bool) -> list[str]:
    """Let a request take longer than a session, and return whose session is over afterwards.

    The heartbeat of the other client comes meanwhile.
    """
    expired: list[str] = []
    timers: KeyedTimers[str] = KeyedTimers(SystemClock(), LoopScheduler(), expired.append)
    session_ms = 50.0
    pairs = [socket.socketpair() for _ in range(2)]
    (slow, slow_end), (member, member_end) = pairs
    loop = asyncio.get_running_loop()

    def process_slow_request() -> None:
        slow_end.recv(1)
        if is_sent:
            member.send(b"h")
        time.sleep((session_ms + 2 * STALL_MS) / 1_000)

    def take_heartbeat() -> None:
        member_end.recv(1)
        timers.set_timer("member", 3_600_000)

    loop.add_reader(slow_end, process_slow_request)
    loop.add_reader(member_end, take_heartbeat)
    timers.set_timer("member", session_ms)
    slow.send(b"r")
    await asyncio.sleep(0.5)
    for end in (slow_end, member_end):
        loop.remove_reader(end)
    timers.cancel_all_timers()
    for each in sum(pairs, ()):
        each.close()
    return expired


def test_after_a_stall_heartbeats_that_wait_are_read_before_sessions_end() -> None:
    assert uvloop.run(stall_with_a_heartbeat_unread(is_sent=True)) == []
    assert uvloop.run(stall_with_a_heartbeat_unread(is_sent=False)) == ["member"]
