"""Call back after changes of a partition, for such as a Fetch that has found too little."""

from __future__ import annotations

from collections.abc import Callable


class ChangeCallbacks:
    """Calls its callbacks after each change that a reader of the partition may wait for.

    These are every append and every advance of the last stable offset, a later start of the log,
    and its end when it is closed.
    """

    def __init__(self) -> None:
        self._callbacks: dict[Callable[[], None], None] = {}

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def add_callback(self, callback: Callable[[], None]) -> None:
        self._callbacks[callback] = None

    def remove_callback(self, callback: Callable[[], None]) -> None:
        self._callbacks.pop(callback, None)

    def call_all(self) -> None:
        """Call every callback that is registered now."""
        if self._callbacks:
            for callback in tuple(self._callbacks):
                callback()
