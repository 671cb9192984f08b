"""Call what only Linux has, or has in another way, each with what other systems have in its place.

The broker calls it here and nowhere else, as `state` and `streams` do in `state/linux_calls.py`.

    here                        Linux                       elsewhere
    yield_processor             sched_yield                 nothing: the caller goes on
    create_thread_clock         its processor time          that of the process
    raise_open_files_limit      up to the hard limit        10 240, where the hard limit is refused
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable
from contextlib import suppress

OPEN_FILES_MAX = 10_240
"""The most open files of a process on macOS (`OPEN_MAX`), whose hard limit says "unlimited"."""


def yield_processor() -> None:
    """Let another process run first, if one waits for the processor."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()


def create_thread_clock() -> Callable[[], float]:
    """Return a function that any thread calls for the processor time of this one, in seconds."""
    if hasattr(time, "pthread_getcpuclockid"):
        clock_id = time.pthread_getcpuclockid(threading.get_ident())
        return lambda: time.clock_gettime(clock_id)
    return time.process_time


def raise_open_files_limit() -> None:
    """Raise the soft limit on open files to the hard one, or as far as the system lets it be.

    Every segment and every client is an open file, and the soft limit is often 1024, or 256.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, OPEN_FILES_MAX):
        if soft == limit or limit < soft < hard:
            return  # nothing to raise, and never lowered
        with suppress(OSError, ValueError):  # macOS accepts no soft limit above its OPEN_MAX
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return
