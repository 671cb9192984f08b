"""Stop the embedded broker that a run has started, if no worker of that run could start.

A broker outlives the workers that use it. One that was started for a run with a missing topic, say,
would be used by nobody, and its user does not know of it. App.start() is a run until it returns.

    what has happened                                     the embedded broker
    it ran before this run began                          stays
    a worker of this run has started, whatever follows    stays: commands look at its topics
    none has, and no other run or worker is there         is stopped
    none has, and another run or worker is there          stays: it is theirs as well
    the process of the run was killed                     stays: `millrace broker stop` stops it

    <state_dir>/broker/runs.lock      locked by each run, with its workers, and shared with others
"""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import suppress
from types import TracebackType

from state.linux_calls import open_memory_file
from streams.errors import ConfigError
from streams.processes.broker_start import is_broker_alive
from streams.processes.broker_stop import stop_broker
from streams.processes.embedded import (
    build_broker_path,
    refuse_application_of_broker_directory,
)
from streams.settings.config import EMBEDDED, StreamsConfig

log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 20.0


class OwnBroker:
    """Knows whether a run has started its embedded broker, and whether a worker has used it.

    A context manager around the run, which stops the broker at its end where nobody uses it. The
    processes that the run forks share what it knows. Raises ConfigError where the application's own
    state would be in the broker's directory.
    """

    def __init__(self, config: StreamsConfig, application_id: str) -> None:
        refuse_application_of_broker_directory(config, application_id)
        self._state_dir = config.state_dir
        self._is_embedded = config.bootstrap_servers == EMBEDDED
        self._lock: int | None = None
        self._use = -1

    def __enter__(self) -> OwnBroker:
        """Note whether a broker runs already, and take a lock by which other runs see this."""
        directory = build_broker_path(self._state_dir)
        with suppress(OSError):  # a directory that can't be written is refused by what needs it
            if self._is_embedded:
                directory.mkdir(parents=True, exist_ok=True)
                file = directory / "runs.lock"
                lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                fcntl.flock(lock, fcntl.LOCK_SH)
                self._use = open_memory_file("millrace-broker-use")
                if is_broker_alive(directory):
                    self.note_broker_use()
                self._lock = lock
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the broker if this run has started it, and no worker nor other run uses it."""
        if self._lock is None:
            return
        try:
            if not os.fstat(self._use).st_size and self._try_lock_out_other_runs(self._lock):
                self._stop_broker_if_running()
        finally:
            os.close(self._lock)
            os.close(self._use)
            self._lock = None

    def note_broker_use(self) -> None:
        """Note that a worker or another run uses the broker, which is then left running."""
        if self._use >= 0:
            os.pwrite(self._use, b"1", 0)

    def _try_lock_out_other_runs(self, lock: int) -> bool:
        """Return whether no other run has this state directory, and keep others out if so."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _stop_broker_if_running(self) -> None:
        """Stop the broker, unless it has not started, or a worker runs."""
        if not is_broker_alive(build_broker_path(self._state_dir)):
            return
        try:
            stopped = stop_broker(self._state_dir, _STOP_TIMEOUT_S)
        except (ConfigError, OSError) as error:
            log.info("the embedded broker stays: %s", error)
        else:
            log.info("the embedded broker at %s is stopped: no worker started", stopped.address)
