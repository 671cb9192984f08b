"""Renew the clients of one stream thread when certificates or secrets of its connections change.

It is done between two commits. The membership keeps its member id and generation, so that there is
no rebalance; the tasks go on from what is committed, as after a recovery, since they are bound to
their producer: its successor's epoch follows on its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from streams.connection.current import CurrentSecurity
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.task import Task
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.thread_tasks import ThreadTasks

log = logging.getLogger(__name__)


class ClientRenewal:
    """Renews one thread's clients, or ends the thread where brokers refuse its security.

    `version` is that of `security` with which the clients were created. `renew_clients` replaces
    them, but for producers, by others with the present security.
    """

    def __init__(
        self,
        thread_name: str,
        tasks: ThreadTasks,
        restorer: Restorer[Task],
        security: CurrentSecurity,
        version: int,
        *,
        renew_clients: Callable[[], None],
        on_state_change: Callable[[ThreadState], None],
    ) -> None:
        self._thread_name = thread_name
        self._tasks = tasks
        self._restorer = restorer
        self._security = security
        self._version = version
        self._renew_clients = renew_clients
        self._on_state_change = on_state_change

    def is_due(self) -> bool:
        """Return whether the security was replaced since the clients were created.

        Raises: AuthenticationError where brokers refuse the security.
        """
        self._security.require_accepted()
        return self._security.version != self._version

    def renew_clients(self) -> None:
        """Renew the clients of tasks that are committed.

        What that raises on the restorer's thread is raised where tasks are taken, and this is due
        as before.
        """
        version = self._security.version

        def renew_and_note() -> None:
            self._renew_clients()
            self._version = version

        self._tasks.discard_uncommitted_work()
        self._restorer.run_between_batches(renew_and_note)
        if self._version != version:
            return
        log.info("%s goes on with new connections", self._thread_name)
        self._on_state_change(ThreadState.REBALANCING)
        self._tasks.report_if_settled()
