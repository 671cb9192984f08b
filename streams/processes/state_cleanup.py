"""Clean the state directory beside the stream threads (see `state.cleanup`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from state.cleanup import delete_unused_tasks
from state.directory import StateDirectory
from streams.common.host import Event, Host

log = logging.getLogger(__name__)

_DELAY_MIN_S = 1.0


class StateDirectoryCleaner:
    """Removes the state of tasks that nobody has run for `delay_ms`, until `stop` is set.

    `list_running_tasks` returns the directories of the tasks that this process runs.
    """

    def __init__(
        self,
        directory: StateDirectory,
        host: Host,
        stop: Event,
        *,
        delay_ms: int,
        list_running_tasks: Callable[[], Collection[str]],
    ) -> None:
        self._directory = directory
        self._host = host
        self._stop = stop
        self._delay_ms = delay_ms
        self._list_running_tasks = list_running_tasks

    def clean_until_stopped(self) -> None:
        """Clean the state directory every `delay_ms` until `stop` is set."""
        while not self._stop.wait(max(self._delay_ms / 1_000, _DELAY_MIN_S)):
            try:
                self.remove_unused_tasks()
            except OSError as error:
                log.warning("the state directory can't be cleaned up: %s", error)

    def remove_unused_tasks(self) -> list[str]:
        """Remove the state of tasks that nobody has run for `delay_ms`, and return their names."""
        return delete_unused_tasks(
            self._directory,
            now_ms=self._host.now_ms(),
            delay_ms=self._delay_ms,
            kept_tasks=self._list_running_tasks(),
        )
