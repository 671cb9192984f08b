"""Cleaning up beside the stream threads: see `state.cleanup`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from state.cleanup import clean
from state.directory import StateDirectory
from streams.runtime.host import Event, Host

log = logging.getLogger(__name__)

_SHORTEST_S = 1.0


class Cleaning:
    """Looks every `delay_ms` until `over` is set. `tasks` names those that this process runs."""

    def __init__(
        self,
        directory: StateDirectory,
        host: Host,
        over: Event,
        *,
        delay_ms: int,
        tasks: Callable[[], Collection[str]],
    ) -> None:
        self._directory = directory
        self._host = host
        self._over = over
        self._delay_ms = delay_ms
        self._tasks = tasks

    def run(self) -> None:
        while not self._over.wait(max(self._delay_ms / 1_000, _SHORTEST_S)):
            try:
                self.step()
            except OSError as error:
                log.warning("the state directory can't be cleaned up: %s", error)

    def step(self) -> list[str]:
        """Remove what nobody has run for `delay_ms`; the names of those tasks."""
        return clean(
            self._directory,
            now_ms=self._host.now_ms(),
            delay_ms=self._delay_ms,
            keep=self._tasks(),
        )
