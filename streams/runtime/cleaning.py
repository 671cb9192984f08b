"""Clean the state directory beside the stream threads (see `state.cleanup`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from state.cleanup import clean
from state.directory import StateDirectory
from streams.runtime.host import Event, Host

log = logging.getLogger(__name__)

_SHORTEST_S = 1.0


class Cleaning:
    """Removes the state of tasks that nobody has run for `delay_ms`, until `stop` is set.

    `list_running_tasks` returns the directories of the tasks that this process runs.
    """

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
        """Clean the state directory every `delay_ms` until `stop` is set."""
        while not self._over.wait(max(self._delay_ms / 1_000, _SHORTEST_S)):
            try:
                self.step()
            except OSError as error:
                log.warning("the state directory can't be cleaned up: %s", error)

    def step(self) -> list[str]:
        """Remove the state of tasks that nobody has run for `delay_ms`, and return their names."""
        return clean(
            self._directory,
            now_ms=self._host.now_ms(),
            delay_ms=self._delay_ms,
            keep=self._tasks(),
        )
