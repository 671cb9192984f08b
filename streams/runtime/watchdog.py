"""The watchdog: what each stream thread does, since when, and who is to blame when it hangs.

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
function. That is logged once, and once more when it goes on. Times are as exact as the looks.
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
    """In what a thread is; see the module's theory of operation."""

    USER = "user function"
    BROKER = "broker call"
    STORE = "state store"
    RUNTIME = "runtime"
    REPLACEMENT = "waiting to be replaced"
    """It has failed; `Doing.what` is the error. The thread itself says so, and not its stack."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What a thread does: `what` names the function, `since_s` is monotonic, `record` is what it
    processes, if it processes. `stack` is there if it is stuck, outermost call first."""

    where: Where
    what: str
    since_s: float
    record: str = ""
    stuck: bool = False
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A thread that waits to be replaced: after what error, since when (monotonic)."""

    error: str
    since_s: float


class Watched(Protocol):
    """A stream thread, as the watchdog looks at it. It may change while it is looked at."""

    @property
    def name(self) -> str: ...

    @property
    def ident(self) -> int | None:
        """Of the operating thread; None while there is none."""
        ...

    @property
    def failed(self) -> Failed | None:
        """While it waits to be replaced."""
        ...

    def turns(self) -> int:
        """How often its loops have gone round."""
        ...

    def record(self) -> str:
        """Where the record came from that is being processed; empty if none is."""
        ...


Frames = Callable[[], Mapping[int, FrameType]]
"""The innermost frame of each operating thread, as `sys._current_frames` has it."""


class Watchdog:
    """Looks at `threads` until `stop`; `doing` has by name what each did at the last look."""

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
        """Look every second until `stop` is set, which is when the threads have ended."""
        while not self._stop.wait(min(LOOK_EVERY_S, self._stuck_after_s / 2)):
            self.look()

    def look(self) -> None:
        """Look at every thread once."""
        frames = self._frames()
        for thread in self._threads:
            frame = frames.get(thread.ident or 0)
            if frame is None:
                self.doing.pop(thread.name, None)
                self._marks.pop(thread.name, None)
            else:
                self._look_at(thread, frame)

    def _look_at(self, thread: Watched, frame: FrameType) -> None:
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
    """What it does and since when, as a predicate: who is to blame comes first."""
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
    """Where a thread with this innermost frame is, and the name of the function that counts: the
    user's that we called, or ours that waits."""
    beneath: FrameType | None = None
    found: FrameType | None = frame
    while found is not None and not found.f_code.co_filename.startswith((_STREAMS, _STATE)):
        beneath, found = found, found.f_back
    if found is None:
        return Where.RUNTIME, frame.f_code.co_qualname
    path = found.f_code.co_filename
    if path.startswith(_BROKER):
        return Where.BROKER, _asked_for(found, _BROKER)
    machinery = path.startswith((_RUNTIME, _STATE))
    if beneath is not None and not (machinery and _is_library(beneath.f_code.co_filename)):
        code = beneath.f_code
        return Where.USER, f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
    if path.startswith(_STATE):
        return Where.STORE, _asked_for(found, (_STATE,))
    if machinery:
        return Where.RUNTIME, found.f_code.co_qualname
    return Where.USER, f"what {found.f_code.co_qualname} calls"  # written in C: it has no frame


def _is_library(path: str) -> bool:
    """Whether our machinery calls it on its own account: Python's own library, and RocksDB's."""
    if _INSTALLED in path:
        return path.partition(_INSTALLED)[2].startswith("rocksdict")
    return path.startswith((_PYTHON, "<"))


def _asked_for(frame: FrameType, places: tuple[str, ...]) -> str:
    """The call by which the thread came to these places."""
    while frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(places):
        frame = frame.f_back
    return frame.f_code.co_qualname
