"""Retry a request that brokers can't answer for the moment.

Right after a topic was created, a broker may not have heard of it, or not know yet that it leads a
partition; a coordinator may be loading. Commands, examples and Spark wait for that here. A stream
thread does not: it rolls back, or asks again at its next turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_RETRY_DELAY_S = 0.1


def call_with_retries(
    action: Callable[[float], T], timeout_s: float, *retriable: type[Exception]
) -> T:
    """Call `action` until it raises no error of `retriable` any more, and return its result.

    `action` is given the seconds that are left. After `timeout_s` the last exception is raised.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            return action(max(deadline_s - time.monotonic(), 0.0))
        except retriable:
            if time.monotonic() + _RETRY_DELAY_S > deadline_s:
                raise
        time.sleep(_RETRY_DELAY_S)
