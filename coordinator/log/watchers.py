"""Who waits for something to happen to a partition: a Fetch that has found too little."""

from __future__ import annotations

from collections.abc import Callable


class Watchers:
    """They are called after every append and every advance of the last stable offset, and when the
    log begins later or is closed."""

    def __init__(self) -> None:
        self._callbacks: dict[Callable[[], None], None] = {}

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def add(self, callback: Callable[[], None]) -> None:
        self._callbacks[callback] = None

    def remove(self, callback: Callable[[], None]) -> None:
        self._callbacks.pop(callback, None)

    def wake(self) -> None:
        if self._callbacks:
            for callback in tuple(self._callbacks):
                callback()
