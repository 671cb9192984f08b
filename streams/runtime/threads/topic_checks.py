"""Create a thread's checks after failures: of its rights, and of its internal topics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.access.acls import derive_acls, list_topic_reads_and_writes
from streams.runtime.assigning.lost_topics import LostTopicCheck
from streams.runtime.clients import Admin
from streams.runtime.threads.worker_resources import WorkerResources

_RIGHTS_TIMEOUT_S = 2.0
"""How long a look at the rights may delay a recovery."""


def create_rights_check(worker: WorkerResources, admin: Admin) -> Callable[[], None]:
    """Create the check of the rights to all topics, which takes at most `_RIGHTS_TIMEOUT_S`."""
    operations = list_topic_reads_and_writes(derive_acls(worker.topology, worker.config))
    return partial(admin.check_topic_rights, operations, _RIGHTS_TIMEOUT_S)


def create_lost_topic_check(worker: WorkerResources, admin: Admin) -> Callable[[], None]:
    """Create the check that internal topics still exist, for one thread of the machine.

    It is a check for each thread, since each has an admin client of its own.
    """
    group = (worker.open_connection, worker.topology.application_id)
    return LostTopicCheck(
        worker.topology,
        admin,
        partial(fetch_group_offsets, *group, require_stable=False),
        worker.host.monotonic_s,
        has_ledger=worker.config.ledger,
    ).check_if_due
