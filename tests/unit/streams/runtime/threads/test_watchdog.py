"""Test the watchdog on a simulated clock with real threads that hang in real calls."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import pytest
from confluent_kafka import Producer

from streams.common.host import SystemHost
from streams.runtime import clients
from streams.runtime.threads.watchdog import (
    ThreadActivity,
    ThreadFailure,
    ThreadLocation,
    Watchdog,
    locate_frame,
)
from tests.processes import HANG_LIMIT_S
from tests.unit.streams.runtime.fakes import Clock, ThreadsOnClock
from tests.unit.streams.runtime.world import World, build_mapping_topology

STUCK_AFTER_S = 30.0


class Hanging:
    """Represents a thread that runs `call(wait)` and hangs where that calls `wait`."""

    name = "thread 0"

    def __init__(self, call: Callable[[Callable[[], Any]], Any]) -> None:
        self.going = 0
        self.taken = ""
        self.failure: ThreadFailure | None = None
        self._hangs, self._goes_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=call, args=(self._wait,))

    def _wait(self, *_: Any) -> Any:
        self._hangs.set()
        self._goes_on.wait(HANG_LIMIT_S)

    @property
    def ident(self) -> int | None:
        return self._thread.ident

    def count_turns(self) -> int:
        return self.going

    def current_record_origin(self) -> str:
        return self.taken

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        assert self._hangs.wait(HANG_LIMIT_S)
        try:
            yield
        finally:
            self._goes_on.set()
            self._thread.join()


class Watching:
    """Holds a watchdog of one thread."""

    def __init__(self, thread: Hanging) -> None:
        self.host = ThreadsOnClock(Clock())
        self.is_outage_told = False
        self.dog = Watchdog(
            [thread],
            self.host,
            threading.Event(),
            stuck_after_s=STUCK_AFTER_S,
            is_outage_told=lambda: self.is_outage_told,
        )

    def after(self, seconds: float) -> ThreadActivity:
        self.host.clock.advance_monotonic_clock(seconds)
        self.dog.inspect_threads()
        return self.dog.activities["thread 0"]


def mapped(function: Callable[[str], str]) -> None:
    """Run a stream thread that passes one record through `function`."""
    with TemporaryDirectory() as directory:
        world = World(build_mapping_topology(function), Path(directory))
        world.load("value")
        world.run_until(world.consumed)


def in_a_users_function(wait: Callable[[], Any]) -> None:
    def shout(value: str) -> str:
        wait()
        return value.upper()

    mapped(shout)


def in_a_broker_call_of_a_users_function(wait: Callable[[], Any]) -> None:
    """Hang in a call of the user's own client within the user's function."""

    def look_up(value: str) -> str:
        def flush() -> None:
            wait()

        flush()
        return value

    mapped(look_up)


def in_a_broker_call(wait: Callable[[], Any]) -> None:
    class Stuck(Producer):  # type: ignore[misc]
        def flush(self, *_: Any) -> int:
            wait()
            return 0

    clients.StreamsProducer(
        "p", {}, transactional=False, timeout_s=1.0, producer_class=Stuck
    ).flush()


def in_a_broker_call_under_a_users_function(wait: Callable[[], Any]) -> None:
    """Hang in a call of our producer within the user's function."""

    def forward(value: str) -> str:
        in_a_broker_call(wait)
        return value

    mapped(forward)


@pytest.mark.parametrize(
    ("call", "where", "what"),
    [
        (in_a_users_function, ThreadLocation.USER, "shout"),
        (in_a_broker_call_of_a_users_function, ThreadLocation.USER, "look_up"),
        (in_a_broker_call, ThreadLocation.BROKER, "StreamsProducer.flush"),
        (in_a_broker_call_under_a_users_function, ThreadLocation.BROKER, "StreamsProducer.flush"),
    ],
)
def test_who_is_to_blame_is_told_from_the_stack(
    call: Callable[[Callable[[], Any]], Any], where: ThreadLocation, what: str
) -> None:
    thread = Hanging(call)
    with thread.running():
        doing = Watching(thread).after(0)
        assert (doing.location, doing.is_stuck) == (where, False)
        assert what in doing.function_name


def test_the_machine_s_clock_belongs_to_the_runtime() -> None:
    located = []

    def locate(frame: FrameType, event: str, _: object) -> None:
        if event == "c_call":  # as the clock has no frame of Python's
            located.append(locate_frame(frame))

    sys.setprofile(locate)
    try:
        SystemHost().monotonic_s()
    finally:
        sys.setprofile(None)
    assert located[0] == (ThreadLocation.RUNTIME, "SystemHost.monotonic_s")


def test_an_episode_is_logged_once_with_the_stack_and_once_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    thread = Hanging(in_a_users_function)
    thread.taken = "lines[0]@16"
    watching = Watching(thread)
    with thread.running():
        watching.after(0)
        thread.taken = "lines[0]@17"
        watching.after(1)
        assert not watching.after(STUCK_AFTER_S - 1).is_stuck
        assert not caplog.records
        for _ in range(3):
            assert watching.after(1).is_stuck
        [told] = caplog.messages
        assert "thread 0 has been in the user's function" in told
        assert "shout" in told
        assert "for 30.0 s, with record lines[0]@17;" in told
        assert "wait()" in told, "its stack"
        thread.going += 1
        assert not watching.after(1).is_stuck
    assert caplog.messages[1] == "thread 0 goes on after 33.0 s"


def test_a_thread_that_waits_for_a_broker_is_a_warning_without_a_stack(
    caplog: pytest.LogCaptureFixture,
) -> None:
    thread = Hanging(in_a_broker_call)
    watching = Watching(thread)
    with thread.running():
        watching.after(0)
        assert watching.after(STUCK_AFTER_S + 1).is_stuck
    [told] = caplog.records
    assert told.levelname == "WARNING"
    assert told.message.startswith("thread 0 has been waiting for the broker for ")
    assert "\n" not in told.message


@pytest.mark.parametrize(
    ("call", "lines"), [(in_a_broker_call, 0), (in_a_users_function, 2)], ids=["broker", "user"]
)
def test_an_outage_that_was_told_has_no_second_line_for_a_thread_that_waits_for_it(
    call: Callable[[Callable[[], Any]], Any], lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    thread = Hanging(call)
    watching = Watching(thread)
    watching.is_outage_told = True
    with thread.running():
        watching.after(0)
        assert watching.after(STUCK_AFTER_S + 1).is_stuck, "its health is as before"
        thread.going += 1
        watching.after(1)
    told = [each for each in caplog.records if each.name.endswith(".watchdog")]
    assert len([each for each in told if each.levelno >= logging.WARNING]) == lines


@pytest.mark.parametrize("moves", ["a turn", "a record"])
def test_a_thread_that_gets_on_is_never_stuck(moves: str) -> None:
    thread = Hanging(in_a_users_function)
    watching = Watching(thread)
    with thread.running():
        for step in range(100):
            if moves == "a turn":
                thread.going += 1
            else:
                thread.taken = f"lines[0]@{step}"
            assert not watching.after(STUCK_AFTER_S - 1).is_stuck


def test_a_thread_that_waits_to_be_replaced_says_after_what_and_is_never_stuck() -> None:
    thread = Hanging(in_a_users_function)
    watching = Watching(thread)
    with thread.running():
        assert watching.after(STUCK_AFTER_S).location is ThreadLocation.USER
        thread.failure = ThreadFailure("RuntimeError: told to", watching.host.clock())
        for _ in range(2):
            doing = watching.after(STUCK_AFTER_S)
            since_s = thread.failure.since_s
            assert doing == ThreadActivity(
                ThreadLocation.REPLACEMENT, "RuntimeError: told to", since_s
            )
        thread.failure = None
        doing = watching.after(1)
        assert (doing.location, doing.since_s) == (ThreadLocation.USER, watching.host.clock())


def test_a_thread_that_has_ended_does_nothing() -> None:
    thread = Hanging(in_a_broker_call)
    watching = Watching(thread)
    with thread.running():
        watching.after(0)
    watching.dog.inspect_threads()
    assert not watching.dog.activities


def test_the_record_in_hand_is_known_while_it_is_processed(tmp_path: Path) -> None:
    seen: list[str] = []

    def look(value: str) -> str:
        seen.append(world.loop.record_origin)
        return value

    world = World(build_mapping_topology(look), tmp_path)
    world.load("a", "b")
    world.run_until(world.consumed)
    assert seen == ["in[0]@0", "in[0]@1"]
    assert world.loop.record_origin == ""
