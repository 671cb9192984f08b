"""Decides what one Fetch reads and which results are sent: without, beginning or in a session.

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
    Key,
    News,
    Session,
    Wanted,
    next_epoch,
    remember,
)
from coordinator.fetching.sessions import Sessions

# A partition, the outcome of reading it, and its part of the response, which is opaque here.
Result = tuple[Wanted, News, Any]


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """Holds the results to send, and the session that the client's next request may be in."""

    session_id: int
    results: list[Result]
    code: Code = Code.NONE


class Fetch(Protocol):
    """Represents one fetch request: the partitions to read, in order, and how to answer it.

    Kafka's counterpart is FetchContext.
    """

    wanted: Iterable[Wanted]

    def answer(self, results: list[Result]) -> FetchAnswer: ...


def open_fetch(
    sessions: Sessions,
    session_id: int,
    epoch: int,
    wanted: dict[Key, Wanted],
    forgotten: Iterable[Key],
    *,
    uses_ids: bool,
    now_ms: int,
) -> Fetch:
    """Return the context of a fetch request, ending or updating its session.

    Kafka's counterpart is FetchManager.newContext. Raises: Refused, FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR.
    """
    if epoch in (FULL_EPOCH, NO_SESSION_EPOCH):
        if session_id != NO_SESSION:
            sessions.remove(session_id)
        if epoch == NO_SESSION_EPOCH:
            return _Alone(wanted)
        return _First(sessions, wanted, uses_ids, now_ms)
    session = sessions.get(session_id)
    if session is None:
        raise Refused(Code.FETCH_SESSION_ID_NOT_FOUND, f"{session_id}")
    if session.epoch != epoch:
        raise Refused(Code.INVALID_FETCH_SESSION_EPOCH, f"{epoch}, not {session.epoch}")
    if session.uses_ids != uses_ids:
        raise Refused(Code.FETCH_SESSION_TOPIC_ID_ERROR, f"session {session_id}")
    session.update(wanted.values(), forgotten)
    if not session.partitions:
        sessions.remove(session_id)
        return _Alone(wanted)
    sessions.touch(session, now_ms)
    session.advance()
    return _Incremental(session, epoch)


class _Alone:
    """Answers a request outside any session with all its results."""

    __slots__ = ("wanted",)

    def __init__(self, wanted: dict[Key, Wanted]) -> None:
        self.wanted: Iterable[Wanted] = wanted.values()

    def answer(self, results: list[Result]) -> FetchAnswer:
        return FetchAnswer(NO_SESSION, results)


class _First:
    """Answers a request with all its results, and begins a session if there is a slot."""

    def __init__(
        self, sessions: Sessions, wanted: dict[Key, Wanted], uses_ids: bool, now_ms: int
    ) -> None:
        self.wanted: Iterable[Wanted] = wanted.values()
        self._sessions = sessions
        self._uses_ids = uses_ids
        self._now_ms = now_ms

    def answer(self, results: list[Result]) -> FetchAnswer:
        partitions = {}
        for partition, outcome, _ in results:
            remember(partition, outcome)
            partitions[partition.key] = partition
        session = self._sessions.create(partitions, self._uses_ids, self._now_ms)
        return FetchAnswer(NO_SESSION if session is None else session.id, results)


class _Incremental:
    """Answers a request of a session with the results that have changed."""

    def __init__(self, session: Session, epoch: int) -> None:
        self.wanted: Iterable[Wanted] = tuple(session.partitions.values())
        self._session = session
        self._epoch = epoch

    def answer(self, results: list[Result]) -> FetchAnswer:
        session = self._session
        if session.epoch != next_epoch(self._epoch):
            # Another connection has sent a request of the same session meanwhile.
            return FetchAnswer(session.id, [], Code.INVALID_FETCH_SESSION_EPOCH)
        changed = [result for result in results if session.tell(result[0], result[1])]
        return FetchAnswer(session.id, changed)
