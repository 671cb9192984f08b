"""Several worker processes of one application, and the process that watches over them.

    a worker ends with     the watcher
    status 0               goes on with the others
    a status above 0       ends the others and takes over the status: the mistake is in all of them
    a signal               starts it again: it takes its slot, its tasks and its state back at once;
                           unless it has ended so `_DEATHS_MAX` times in a row within `_QUICKLY_S`

Workers end by themselves when their watcher is gone, however it went.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

_QUICKLY_S = 5.0
_DEATHS_MAX = 5


def run_workers(count: int, run: Callable[[], None]) -> int:
    """Run `count` processes that each call `run`, until all have ended. Returns the exit status.
    SIGTERM and SIGINT are passed on to all of them."""
    children: dict[int, float] = {}
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for child in children:
            os.kill(child, signal.SIGTERM)

    def start() -> None:
        began = time.monotonic()
        children[_fork(run)] = began

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    for _ in range(count):
        start()
    status = quick_deaths = 0
    while children:
        child, ended = os.wait()
        lived_s = time.monotonic() - children.pop(child)
        code = os.waitstatus_to_exitcode(ended)
        if code < 0 and not stopping:
            quick_deaths = quick_deaths + 1 if lived_s < _QUICKLY_S else 0
            if quick_deaths < _DEATHS_MAX:
                name = signal.Signals(-code).name
                sys.stderr.write(f"millrace: worker {child} was ended by {name}: started again\n")
                start()
                continue
        if code != 0 and not stopping:
            status = code if code > 0 else 1
            stop(signal.SIGTERM, None)
    return status


def watcher_is_gone(watcher: int) -> bool:
    """Whether the process that started this one has ended: then another has adopted this one."""
    return os.getppid() != watcher


def _fork(run: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        run()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        logging.exception("a worker ended")
        os._exit(1)
    os._exit(0)
