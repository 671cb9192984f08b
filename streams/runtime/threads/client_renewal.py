"""Renew the clients of one stream thread when certificates or secrets of its connections change.

It is done between two commits. The membership keeps its member id and generation, so that there is
no rebalance; the tasks go on from what is committed, as after a recovery, since they are bound to
their producer: its successor's epoch follows on its own.
"""

from __future__ import annotations

import logging

from streams.runtime.threads.thread_dependencies import ThreadDependencies
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.thread_tasks import ThreadTasks

log = logging.getLogger(__name__)


class ClientRenewal:
    """Renews one thread's clients, or ends the thread where brokers refuse its security."""

    def __init__(self, dependencies: ThreadDependencies, tasks: ThreadTasks) -> None:
        self._dependencies = dependencies
        self._tasks = tasks
        self._version = dependencies.security_version

    def is_due(self) -> bool:
        """Return whether the security was replaced since the clients were created.

        Raises: AuthenticationError where brokers refuse the security.
        """
        self._dependencies.security.require_accepted()
        return self._dependencies.security.version != self._version

    def renew_clients(self) -> None:
        """Renew the clients of tasks that are committed.

        What that raises on the restorer's thread is raised where tasks are taken, and this is due
        as before.
        """
        parts, tasks = self._dependencies, self._tasks
        version = parts.security.version

        def renew_and_note() -> None:
            parts.renew_clients()
            self._version = version

        tasks.discard_uncommitted_work()
        parts.restorer.run_between_batches(renew_and_note)
        if self._version != version:
            return
        log.info("%s goes on with new connections", parts.name)
        parts.on_state_change(ThreadState.REBALANCING)
        tasks.report_if_settled()
