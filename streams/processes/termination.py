"""End applications that `App.start` has started when their process ends, or is told to.

Python's default for SIGTERM ends a process at once: nothing is committed, and the group keeps the
member until its session expires. So, unless the caller has a handler of their own:

    SIGTERM       SystemExit (143) is raised in the main thread, as KeyboardInterrupt is for SIGINT.
                  `with` and `finally` blocks run; they commit and leave the group.
    again         the process ends at once, by the signal
    at exit       what is not closed by then is closed, for at most `shutdown_timeout_ms`

A signal that comes while an application is being closed only makes the next one end the process.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Protocol, TypeVar
from weakref import WeakSet

from streams.errors import UserError
from streams.processes.lifecycle import LifecycleState

log = logging.getLogger(__name__)

_EXIT_STATUS = 128 + signal.SIGTERM


class Closable(Protocol):
    """Represents an application that runs in the background (`RunningApp`)."""

    @property
    def state(self) -> LifecycleState: ...

    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


class OpenApplications:
    """Holds the applications of this process that are not closed yet."""

    def __init__(self) -> None:
        self._applications: WeakSet[Closable] = WeakSet()
        self._register_once: Callable[[], object] = lambda: atexit.register(self.close_all)

    def add_application(self, application: T) -> T:
        """Add an application, which is closed when the process ends, and return it.

        Only the main thread can set a handler of signals: in another one nothing is done.
        """
        if threading.current_thread() is not threading.main_thread():
            return application
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self.handle_signal)
        self._applications.add(application)
        self._register_once()
        self._register_once = lambda: None
        return application

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Raise SystemExit where an application runs; let the next signal end the process."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        states = {each.state for each in list(self._applications)} - {LifecycleState.NOT_RUNNING}
        if not states:
            os.kill(os.getpid(), signal.SIGTERM)
        elif LifecycleState.PENDING_SHUTDOWN not in states:
            raise SystemExit(_EXIT_STATUS)

    def close_all(self) -> None:
        """Close all applications that are still open; log those whose close fails."""
        for application in list(self._applications):
            if application.state is not LifecycleState.NOT_RUNNING:
                try:
                    application.close()
                except UserError as error:
                    log.error("%s", error)


OPEN_APPLICATIONS = OpenApplications()
"""The applications that `App.start` has started in this process."""
