"""Renew the clients of one stream thread when certificates or secrets of its connections change.

It is done between two commits. The membership keeps its member id and generation, so that there is
no rebalance; the tasks go on from what is committed, as after a recovery, since they are bound to
their producer: its successor's epoch follows on its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from streams.runtime.thread_dependencies import ThreadDependencies
from streams.runtime.thread_state import ThreadState
from streams.runtime.thread_tasks import ThreadTasks

log = logging.getLogger(__name__)


class ClientRenewal:
    """Renews one thread's clients, or ends the thread where brokers refuse its security.

    `commit_tasks` is called before the clients are renewed.
    """

    def __init__(
        self,
        dependencies: ThreadDependencies,
        tasks: ThreadTasks,
        commit_tasks: Callable[[], None],
    ) -> None:
        self._dependencies = dependencies
        self._tasks = tasks
        self._commit_tasks = commit_tasks
        self._version = dependencies.security_version

    def renew_if_replaced(self) -> None:
        """Renew the clients if the security was replaced since they were created.

        Raises: AuthenticationError where brokers refuse the security, and what a commit raises.
        """
        parts, tasks = self._dependencies, self._tasks
        parts.security.require_accepted()
        version = parts.security.version
        if version == self._version:
            return
        self._commit_tasks()
        parts.producers.discard_producers()
        tasks.roll_back_tasks()
        parts.renew_clients()
        self._version = version
        log.info("%s goes on with new connections", parts.name)
        parts.on_state_change(ThreadState.REBALANCING)
        tasks.report_if_settled()
