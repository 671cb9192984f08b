"""Watch each stream thread: what it does, since when, and whose code it is in when it hangs.

Theory of operation. Nothing is added to what a record costs: a thread of its own looks at the stack
of each stream thread now and then. The innermost function of ours says where the thread is:

    innermost function of ours    called by it              the thread is in
    runtime/clients, membership   anything                  BROKER: it waits for an answer
    state                         nothing, or a library     STORE: it reads or writes a disk
    the rest of runtime           nothing, or a library     RUNTIME: our own work and waits
    state, the rest of runtime    anything else             USER: a function of the user's
    operators and all the rest    nothing (C), or anything  USER

So a user's function that waits for a broker on its own account is to blame itself, and one that
forwards a record which then waits in our producer is not.

The thread hangs when for `stuck_after_s` it has not moved: same turn of its loop, same record, same
function. That is logged once, and once more when it goes on; not so a call to a broker in an outage
that the log tells of. Times are as exact as the interval of the inspections.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType
from typing import Protocol, TypeAlias

import state
from streams.common.host import Event, Host

FunctionName: TypeAlias = str

log = logging.getLogger(__name__)

INSPECT_INTERVAL_S = 1.0
_STACK_FRAMES_MAX = 30


class ThreadLocation(StrEnum):
    """Names the code in which a thread is: the user's, a client's, a store's or the runtime's.

    The module's theory of operation says how it is found out.
    """

    USER = "user function"
    BROKER = "broker call"
    STORE = "state store"
    RUNTIME = "runtime"
    REPLACEMENT = "waiting to be replaced"
    """The thread has failed; `ThreadActivity.function_name` is the error. The thread itself says
    so, and not its stack."""


@dataclass(frozen=True, slots=True)
class ThreadActivity:
    """Describes a thread's present activity: whose code it is in, and since when.

    `function_name` names the function, `since_s` is monotonic, `record_origin` is the record that
    it processes, if it does. `stack` is there if the thread is stuck, outermost call first.
    """

    location: ThreadLocation
    function_name: str
    since_s: float
    record_origin: str = ""
    is_stuck: bool = False
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadFailure:
    """Describes a thread that has failed and waits to be replaced.

    `error` is its name; `since_s` is the monotonic time of the failure.
    """

    error: str
    since_s: float


class WatchedThread(Protocol):
    """Declares the properties of a running stream thread that the watchdog reads."""

    @property
    def name(self) -> str: ...

    @property
    def ident(self) -> int | None:
        """Return the id of the operating system's thread; None while there is none."""
        ...

    @property
    def failure(self) -> ThreadFailure | None:
        """Return the failure of a thread that waits to be replaced; None otherwise."""
        ...

    def count_turns(self) -> int:
        """Return how many turns the thread's loops have made."""
        ...

    def current_record_origin(self) -> str:
        """Return the origin of the record that is being processed; empty if none is."""
        ...


ReadFrames = Callable[[], Mapping[int, FrameType]]
"""Returns the innermost frame of each operating thread, as `sys._current_frames` does."""


class Watchdog:
    """Inspects `threads` at an interval until `stop` is set, and logs those that are stuck.

    `activities` has by thread name what each did at the last inspection. `is_outage_told` returns
    whether the log already says that brokers are away.
    """

    def __init__(
        self,
        threads: Collection[WatchedThread],
        host: Host,
        stop: Event,
        *,
        stuck_after_s: float,
        is_outage_told: Callable[[], bool] = lambda: False,
        read_frames: ReadFrames = sys._current_frames,
    ) -> None:
        self.activities: dict[str, ThreadActivity] = {}
        self._threads = threads
        self._host = host
        self._stop = stop
        self._stuck_after_s = stuck_after_s
        self._read_frames = read_frames
        self._is_outage_logged = is_outage_told
        self._last_marks: dict[str, object] = {}
        self._told_names: set[str] = set()
        """The names of threads whose hang was logged, and that have not moved since."""

    def watch_until_stopped(self) -> None:
        """Inspect the threads every second until `stop` is set, which is when they have ended."""
        while not self._stop.wait(min(INSPECT_INTERVAL_S, self._stuck_after_s / 2)):
            self.inspect_threads()

    def inspect_threads(self) -> None:
        """Inspect every watched thread once, and log those that are newly stuck or go on."""
        frames = self._read_frames()
        for thread in self._threads:
            frame = frames.get(thread.ident or 0)
            if frame is None:
                self.activities.pop(thread.name, None)
                self._last_marks.pop(thread.name, None)
                self._told_names.discard(thread.name)
            else:
                self._inspect_thread(thread, frame)

    def _inspect_thread(self, thread: WatchedThread, frame: FrameType) -> None:
        """Log when a watched thread gets stuck in one place, or moves again."""
        now_s, name = self._host.monotonic_s(), thread.name
        failed = thread.failure
        if failed is not None:
            self._last_marks.pop(name, None)
            self._told_names.discard(name)
            self.activities[name] = ThreadActivity(
                ThreadLocation.REPLACEMENT, failed.error, failed.since_s
            )
            return
        where, what = locate_frame(frame)
        record = thread.current_record_origin()
        mark = (thread.count_turns(), record, where, what)
        before = self.activities.get(name)
        if before is None or mark != self._last_marks.get(name):
            if before is not None and name in self._told_names:
                self._told_names.discard(name)
                log.warning("%s goes on after %.1f s", name, now_s - before.since_s)
            self._last_marks[name] = mark
            self.activities[name] = ThreadActivity(where, what, now_s, record)
        elif not before.is_stuck and now_s - before.since_s >= self._stuck_after_s:
            stack = tuple(traceback.format_stack(frame)[-_STACK_FRAMES_MAX:])
            stuck = ThreadActivity(where, what, before.since_s, before.record_origin, True, stack)
            self.activities[name] = stuck
            told = describe_activity(stuck, now_s)
            if where is ThreadLocation.BROKER and self._is_outage_logged():
                log.debug("%s %s", name, told)
                return
            self._told_names.add(name)
            if where is ThreadLocation.BROKER:
                log.warning("%s %s", name, told)  # passes by itself: all its calls are bounded
            else:
                log.error("%s %s; its stack:\n%s", name, told, "".join(stack))


def describe_activity(activity: ThreadActivity, now_s: float) -> str:
    """Describe a thread's activity and its duration, as the predicate of a sentence.

    Whose code it is in comes first.
    """
    seconds = f"for {now_s - activity.since_s:.1f} s"
    record = f", with record {activity.record_origin}" if activity.record_origin else ""
    match activity.location:
        case ThreadLocation.USER:
            return f"has been in the user's function {activity.function_name} {seconds}{record}"
        case ThreadLocation.BROKER:
            return f"has been waiting for the broker {seconds}, in {activity.function_name}"
        case ThreadLocation.REPLACEMENT:
            return f"has been waiting to be replaced {seconds}, after: {activity.function_name}"
        case ThreadLocation.STORE:
            return f"has been in a state store {seconds}, in {activity.function_name}"
        case _:
            return f"has been in {activity.function_name} {seconds}"


_RUNTIME_PATH = os.path.dirname(os.path.dirname(__file__)) + os.sep
_STREAMS_PATH = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_STATE_PATH = os.path.dirname(state.__file__) + os.sep
_COMMON_PATH = _STREAMS_PATH + "common" + os.sep  # the runtime's clocks, locks and threads
_BROKER_PATHS = (_RUNTIME_PATH + "clients" + os.sep, _STREAMS_PATH + "membership" + os.sep)
_PYTHON_PATH = os.path.dirname(os.__file__) + os.sep
_SITE_PACKAGES = f"{os.sep}site-packages{os.sep}"


def locate_frame(frame: FrameType) -> tuple[ThreadLocation, FunctionName]:
    """Classify a thread by its innermost frame, and name the function that it is in.

    The function is the user's that was called, or ours that waits.
    """
    callee: FrameType | None = None
    ours: FrameType | None = frame
    while ours is not None and not ours.f_code.co_filename.startswith((_STREAMS_PATH, _STATE_PATH)):
        callee, ours = ours, ours.f_back
    if ours is None:
        return ThreadLocation.RUNTIME, frame.f_code.co_qualname
    path = ours.f_code.co_filename
    if path.startswith(_BROKER_PATHS):
        return ThreadLocation.BROKER, _find_outermost_call(ours, _BROKER_PATHS)
    machinery = path.startswith((_RUNTIME_PATH, _STATE_PATH, _COMMON_PATH))
    if callee is not None and not (machinery and _is_library(callee.f_code.co_filename)):
        code = callee.f_code
        return ThreadLocation.USER, f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
    if path.startswith(_STATE_PATH):
        return ThreadLocation.STORE, _find_outermost_call(ours, (_STATE_PATH,))
    if machinery:
        return ThreadLocation.RUNTIME, ours.f_code.co_qualname
    # A function that is written in C has no frame.
    return ThreadLocation.USER, f"what {ours.f_code.co_qualname} calls"


def _is_library(path: str) -> bool:
    """Return whether a file is of Python's own library or RocksDB's, which the runtime calls."""
    if _SITE_PACKAGES in path:
        return path.partition(_SITE_PACKAGES)[2].startswith("rocksdict")
    return path.startswith((_PYTHON_PATH, "<"))


def _find_outermost_call(frame: FrameType, paths: tuple[str, ...]) -> str:
    """Walk up the stack while its code is in `paths`, and return the last function's name."""
    while frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(paths):
        frame = frame.f_back
    return frame.f_code.co_qualname
