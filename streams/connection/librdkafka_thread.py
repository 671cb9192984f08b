"""Run a user's function on a thread of librdkafka without collecting garbage there.

librdkafka calls `oauth_cb` on a thread of its own. Python may collect garbage on any thread; if
that destroys another client, librdkafka ends the process (rd_kafka_destroy_app: "calling
rd_kafka_destroy() from librdkafka owned thread is prohibited").
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import Lock
from typing import Any

_lock = Lock()
_running_count = 0
_was_enabled = True


def wrap_without_garbage_collection(function: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a function that calls `function` while the collection of garbage is paused."""

    def call(config: str) -> Any:
        _pause_garbage_collection()
        try:
            return function(config)
        finally:
            _resume_garbage_collection()

    return call


def _pause_garbage_collection() -> None:
    """Pause the collection, until as many calls of `_resume_garbage_collection` have come."""
    global _running_count, _was_enabled
    with _lock:
        if _running_count == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _running_count += 1


def _resume_garbage_collection() -> None:
    """Resume the collection if no other function needs the pause."""
    global _running_count
    with _lock:
        _running_count -= 1
        if _running_count == 0 and _was_enabled:
            gc.enable()
