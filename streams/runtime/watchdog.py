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
function. That is logged once, and once more when it goes on. Times are as exact as the interval of
the inspections.
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
from typing import Protocol

import state
import streams
from streams.runtime.host import Event, Host

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
_STACK_MAX = 30


class Where(StrEnum):
    """Names where a thread is; see the module's theory of operation."""

    USER = "user function"
    BROKER = "broker call"
    STORE = "state store"
    RUNTIME = "runtime"
    REPLACEMENT = "waiting to be replaced"
    """The thread has failed; `ThreadActivity.function_name` is the error. The thread itself says
    so, and not its stack."""


@dataclass(frozen=True, slots=True)
class Doing:
    """Describes what a thread does.

    `function_name` names the function, `since_s` is monotonic, `record_origin` is the record that
    it processes, if it does. `stack` is there if the thread is stuck, outermost call first.
    """

    where: Where
    what: str
    since_s: float
    record: str = ""
    stuck: bool = False
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """Describes a thread that waits to be replaced: its error, and since when (monotonic)."""

    error: str
    since_s: float


class Watched(Protocol):
    """Represents a stream thread as the watchdog sees it, while the thread goes on."""

    @property
    def name(self) -> str: ...

    @property
    def ident(self) -> int | None:
        """Return the id of the operating system's thread; None while there is none."""
        ...

    @property
    def failed(self) -> Failed | None:
        """Return the failure of a thread that waits to be replaced; None otherwise."""
        ...

    def turns(self) -> int:
        """Return how many turns the thread's loops have made."""
        ...

    def record(self) -> str:
        """Return the origin of the record that is being processed; empty if none is."""
        ...


Frames = Callable[[], Mapping[int, FrameType]]
"""Returns the innermost frame of each operating thread, as `sys._current_frames` does."""


class Watchdog:
    """Inspects `threads` at an interval until `stop` is set, and logs those that are stuck.

    `activities` has by thread name what each did at the last inspection.
    """

    def __init__(
        self,
        threads: Collection[Watched],
        host: Host,
        stop: Event,
        *,
        stuck_after_s: float,
        frames: Frames = sys._current_frames,
    ) -> None:
        self.doing: dict[str, Doing] = {}
        self._threads = threads
        self._host = host
        self._stop = stop
        self._stuck_after_s = stuck_after_s
        self._frames = frames
        self._marks: dict[str, object] = {}

    def run(self) -> None:
        """Inspect the threads every second until `stop` is set, which is when they have ended."""
        while not self._stop.wait(min(LOOK_EVERY_S, self._stuck_after_s / 2)):
            self.look()

    def look(self) -> None:
        """Inspect every thread once."""
        frames = self._frames()
        for thread in self._threads:
            frame = frames.get(thread.ident or 0)
            if frame is None:
                self.doing.pop(thread.name, None)
                self._marks.pop(thread.name, None)
            else:
                self._look_at(thread, frame)

    def _look_at(self, thread: Watched, frame: FrameType) -> None:
        """Update what one thread does, and log if it is stuck or goes on."""
        now_s, name = self._host.monotonic_s(), thread.name
        failed = thread.failed
        if failed is not None:
            self._marks.pop(name, None)
            self.doing[name] = Doing(Where.REPLACEMENT, failed.error, failed.since_s)
            return
        where, what = locate(frame)
        record = thread.record()
        mark = (thread.turns(), record, where, what)
        before = self.doing.get(name)
        if before is None or mark != self._marks.get(name):
            if before is not None and before.stuck:
                log.warning("%s goes on after %.1f s", name, now_s - before.since_s)
            self._marks[name] = mark
            self.doing[name] = Doing(where, what, now_s, record)
        elif not before.stuck and now_s - before.since_s >= self._stuck_after_s:
            stack = tuple(traceback.format_stack(frame)[-_STACK_MAX:])
            stuck = Doing(where, what, before.since_s, before.record, True, stack)
            self.doing[name] = stuck
            log.error("%s %s; its stack:\n%s", name, explain(stuck, now_s), "".join(stack))


def explain(doing: Doing, now_s: float) -> str:
    """Describe what a thread does and since when, as the predicate of a sentence.

    Whose code it is in comes first.
    """
    seconds = f"for {now_s - doing.since_s:.1f} s"
    record = f", with record {doing.record}" if doing.record else ""
    match doing.where:
        case Where.USER:
            return f"has been in the user's function {doing.what} {seconds}{record}"
        case Where.BROKER:
            return f"has been waiting for the broker {seconds}, in {doing.what}"
        case Where.REPLACEMENT:
            return f"has been waiting to be replaced {seconds}, after: {doing.what}"
        case Where.STORE:
            return f"has been in a state store {seconds}, in {doing.what}"
        case _:
            return f"has been in {doing.what} {seconds}"


_STREAMS = os.path.dirname(streams.__file__) + os.sep
_STATE = os.path.dirname(state.__file__) + os.sep
_RUNTIME = _STREAMS + "runtime" + os.sep
_BROKER = (_RUNTIME + "clients" + os.sep, _STREAMS + "membership" + os.sep)
_PYTHON = os.path.dirname(os.__file__) + os.sep
_INSTALLED = f"{os.sep}site-packages{os.sep}"


def locate(frame: FrameType) -> tuple[Where, str]:
    """Classify a thread by its innermost frame, and name the function that it is in.

    The function is the user's that was called, or ours that waits.
    """
    callee: FrameType | None = None
    ours: FrameType | None = frame
    while ours is not None and not ours.f_code.co_filename.startswith((_STREAMS, _STATE)):
        callee, ours = ours, ours.f_back
    if ours is None:
        return Where.RUNTIME, frame.f_code.co_qualname
    path = ours.f_code.co_filename
    if path.startswith(_BROKER):
        return Where.BROKER, _asked_for(ours, _BROKER)
    machinery = path.startswith((_RUNTIME, _STATE))
    if callee is not None and not (machinery and _is_library(callee.f_code.co_filename)):
        code = callee.f_code
        return Where.USER, f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
    if path.startswith(_STATE):
        return Where.STORE, _asked_for(ours, (_STATE,))
    if machinery:
        return Where.RUNTIME, ours.f_code.co_qualname
    # A function that is written in C has no frame.
    return Where.USER, f"what {ours.f_code.co_qualname} calls"


def _is_library(path: str) -> bool:
    """Return whether a file is of Python's own library or RocksDB's, which the runtime calls."""
    if _INSTALLED in path:
        return path.partition(_INSTALLED)[2].startswith("rocksdict")
    return path.startswith((_PYTHON, "<"))


def _asked_for(frame: FrameType, places: tuple[str, ...]) -> str:
    """Walk up the stack while its code is in `paths`, and return the last function's name."""
    while frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(places):
        frame = frame.f_back
    return frame.f_code.co_qualname
