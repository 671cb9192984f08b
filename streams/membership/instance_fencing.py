"""Tell two workers with one identity apart: one that is fenced twice takes another identity.

A copied state directory (an image of a machine, a snapshot of a volume) has the ids of the
original. Its worker joins the group in the place of the original's, which joins again in turn: each
answer FENCED_INSTANCE_ID is right, and they would go on for ever.

    fenced                                           what follows
    once                                             join again: whoever was fenced by its own
                                                     successor ends soon
    once more, with the same instance id             `renew_identity` gives the worker another
                                                     process id and directory id
    after a JoinGroup whose answer was lost          not counted, once: the coordinator may have
                                                     taken it after the one that was sent again
Source: KIP-345 (static members).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeAlias

from streams.errors import StreamsError

IsInstanceIdGivenUp: TypeAlias = bool
"""True if the instance id must not be used any more."""

log = logging.getLogger(__name__)

_FENCED_MAX = 2


class WorkerIds(NamedTuple):
    """Holds the two ids that a worker's state directory gives it."""

    process_id: str
    directory_id: str


class IdentityReplaced(Exception):
    """Signals to a stream thread that its worker has other ids: its loop has to be created anew."""


class InstanceFencing:
    """Counts how often each member of a worker was fenced, and renews the worker's identity.

    `renew_identity` writes and returns other ids; it raises StreamsError where it can't.
    """

    def __init__(
        self,
        ids: WorkerIds,
        renew_identity: Callable[[], WorkerIds],
        lock: AbstractContextManager[object],
    ) -> None:
        self._renew_identity = renew_identity
        self._lock = lock
        self._fenced_member_ids: dict[str, set[str]] = {}
        self._lost_joins: set[str] = set()
        self._replaced_instance_ids: set[str] = set()
        self._failure: StreamsError | None = None
        self.ids = ids
        """The ids that the worker has now."""

    def note_lost_join(self, instance_id: str) -> None:
        """Note that a JoinGroup was sent whose answer was lost."""
        self._lost_joins.add(instance_id)

    def count_fencing_and_renew_identity(
        self, instance_id: str, member_id: str
    ) -> IsInstanceIdGivenUp:
        """Count an answer FENCED_INSTANCE_ID to a member, and renew the identity if it is due.

        Heartbeats and a join may both hear it: it counts once for each member id. Returns whether
        this instance id must not be used any more.
        """
        with self._lock:
            if instance_id in self._replaced_instance_ids:
                return True
            fenced = self._fenced_member_ids.setdefault(instance_id, set())
            if member_id in fenced:
                return False
            if instance_id in self._lost_joins:
                self._lost_joins.discard(instance_id)
                return False
            fenced.add(member_id)
            if len(fenced) < _FENCED_MAX:
                return False
            self._replaced_instance_ids.add(instance_id)
            self._replace_worker_ids(instance_id)
            return True

    def _replace_worker_ids(self, instance_id: str) -> None:
        """Renew the identity, unless another thread's member with the same one has done so."""
        former = self.ids
        if former.process_id not in instance_id or self._failure is not None:
            return
        try:
            self.ids = self._renew_identity()
        except StreamsError as error:
            self._failure = error
            return
        log.warning(
            "%s was fenced twice: another worker has the same state directory, or a copy of it. "
            "This one goes on as another member, process id %s, directory id %s, with the state "
            "that it has. Don't copy a directory while its worker runs, or delete the files "
            "process-*/id and directory-id of the copy",
            instance_id,
            self.ids.process_id,
            self.ids.directory_id,
        )

    def is_replaced_or_raise_failure(self, process_id: str) -> bool:
        """Return whether the worker has another process id than this one now.

        Raises: StreamsError if it is to have others, and they can't be written.
        """
        if self._failure is not None:
            raise self._failure
        return self.ids.process_id != process_id
