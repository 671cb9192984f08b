"""Decide what a Fetch reads and which results are sent, by the fetch session that it names.

    session id   epoch   the request
    any          0       whole; ends that session, and begins a new one if there is a slot
    any          -1      whole; ends that session
    of a session its own what has changed; the answer has what has changed
    unknown      other   FETCH_SESSION_ID_NOT_FOUND
    of a session other   INVALID_FETCH_SESSION_EPOCH

A session whose last partition is forgotten ends, and the request is answered without one. Topic ids
came with version 13: a session keeps to ids or names (FETCH_SESSION_TOPIC_ID_ERROR).
Source: KIP-227, KIP-516; kafka.server.FetchManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from coordinator.errors import Code, Refused
from coordinator.fetching.session import (
    FULL_EPOCH,
    NO_SESSION,
    NO_SESSION_EPOCH,
    FetchPartition,
    FetchSession,
    PartitionKey,
    PartitionOutcome,
    next_epoch,
    store_sent_outcome_in_partition,
)
from coordinator.fetching.session_cache import FetchSessionCache

# A partition, the outcome of reading it, and its part of the response, which is opaque here.
PartitionResult = tuple[FetchPartition, PartitionOutcome, Any]


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """Holds the results to send, and the session that the client's next request may be in."""

    session_id: int
    results: list[PartitionResult]
    code: Code = Code.NONE


class FetchContext(Protocol):
    """Represents one fetch request: the partitions to read, in order, and how to answer it.

    Kafka's counterpart is FetchContext.
    """

    partitions: Iterable[FetchPartition]

    def build_answer(self, results: list[PartitionResult]) -> FetchAnswer: ...


def create_fetch_context(
    sessions: FetchSessionCache,
    session_id: int,
    session_epoch: int,
    partitions: dict[PartitionKey, FetchPartition],
    forgotten: Iterable[PartitionKey],
    *,
    uses_topic_ids: bool,
    now_ms: int,
) -> FetchContext:
    """Return the context of a fetch request, ending or updating its session.

    Kafka's counterpart is FetchManager.newContext. Raises: Refused, FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR.
    """
    if session_epoch in (FULL_EPOCH, NO_SESSION_EPOCH):
        if session_id != NO_SESSION:
            sessions.remove_session(session_id)
        if session_epoch == NO_SESSION_EPOCH:
            return _SessionlessFetchContext(partitions)
        return _FullFetchContext(sessions, partitions, uses_topic_ids, now_ms)
    session = sessions.find_session(session_id)
    if session is None:
        raise Refused(Code.FETCH_SESSION_ID_NOT_FOUND, f"{session_id}")
    if session.epoch != session_epoch:
        raise Refused(Code.INVALID_FETCH_SESSION_EPOCH, f"{session_epoch}, not {session.epoch}")
    if session.uses_topic_ids != uses_topic_ids:
        raise Refused(Code.FETCH_SESSION_TOPIC_ID_ERROR, f"session {session_id}")
    session.add_update_and_forget_partitions(partitions.values(), forgotten)
    if not session.partitions:
        sessions.remove_session(session_id)
        return _SessionlessFetchContext(partitions)
    sessions.touch_session(session, now_ms)
    session.advance_epoch()
    return _IncrementalFetchContext(session, session_epoch)


class _SessionlessFetchContext:
    """Answers a request outside any session with all its results."""

    __slots__ = ("partitions",)

    def __init__(self, partitions: dict[PartitionKey, FetchPartition]) -> None:
        self.partitions: Iterable[FetchPartition] = partitions.values()

    def build_answer(self, results: list[PartitionResult]) -> FetchAnswer:
        return FetchAnswer(NO_SESSION, results)


class _FullFetchContext:
    """Answers a request with all its results, and begins a session if the cache has a slot."""

    def __init__(
        self,
        sessions: FetchSessionCache,
        partitions: dict[PartitionKey, FetchPartition],
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.partitions: Iterable[FetchPartition] = partitions.values()
        self._sessions = sessions
        self._uses_topic_ids = uses_topic_ids
        self._now_ms = now_ms

    def build_answer(self, results: list[PartitionResult]) -> FetchAnswer:
        partitions = {}
        for partition, outcome, _ in results:
            store_sent_outcome_in_partition(partition, outcome)
            partitions[partition.key] = partition
        session = self._sessions.try_create_session(partitions, self._uses_topic_ids, self._now_ms)
        return FetchAnswer(NO_SESSION if session is None else session.id, results)


class _IncrementalFetchContext:
    """Answers a request of a session with the results that have changed."""

    def __init__(self, session: FetchSession, epoch: int) -> None:
        self.partitions: Iterable[FetchPartition] = tuple(session.partitions.values())
        self._session = session
        self._epoch = epoch

    def build_answer(self, results: list[PartitionResult]) -> FetchAnswer:
        session = self._session
        if session.epoch != next_epoch(self._epoch):
            # Another connection has sent a request of the same session meanwhile.
            return FetchAnswer(session.id, [], Code.INVALID_FETCH_SESSION_EPOCH)
        changed = [result for result in results if session.record_outcome(result[0], result[1])]
        return FetchAnswer(session.id, changed)
