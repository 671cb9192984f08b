"""What one Fetch reads, and which of its answers are sent: alone, beginning a session, or in one.

    session id   epoch   the request
    any          0       whole; ends that session, and begins a new one if there is a slot
    any          -1      whole; ends that session
    of a session its own what has changed; the answer has what has changed
    unknown      other   FETCH_SESSION_ID_NOT_FOUND
    of a session other   INVALID_FETCH_SESSION_EPOCH

A session whose last partition is forgotten ends, and the request is one of its own. Topic ids came
with version 13: a session keeps to ids or names (FETCH_SESSION_TOPIC_ID_ERROR).
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

# A partition, whether it has news, and the answer itself, which nobody here looks into.
Result = tuple[Wanted, News, Any]


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """`session_id` tells the client which session its next request may be in."""

    session_id: int
    results: list[Result]
    code: Code = Code.NONE


class Fetch(Protocol):
    """A request: what it reads, in this order, and its answer once that has been read."""

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
    """Refused with one of the codes above."""
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
    """Outside any session."""

    __slots__ = ("wanted",)

    def __init__(self, wanted: dict[Key, Wanted]) -> None:
        self.wanted: Iterable[Wanted] = wanted.values()

    def answer(self, results: list[Result]) -> FetchAnswer:
        return FetchAnswer(NO_SESSION, results)


class _First:
    """Begins a session when it is answered."""

    def __init__(
        self, sessions: Sessions, wanted: dict[Key, Wanted], uses_ids: bool, now_ms: int
    ) -> None:
        self.wanted: Iterable[Wanted] = wanted.values()
        self._sessions = sessions
        self._uses_ids = uses_ids
        self._now_ms = now_ms

    def answer(self, results: list[Result]) -> FetchAnswer:
        partitions = {}
        for one, news, _ in results:
            remember(one, news)
            partitions[one.key] = one
        session = self._sessions.create(partitions, self._uses_ids, self._now_ms)
        return FetchAnswer(NO_SESSION if session is None else session.id, results)


class _Incremental:
    """In a session."""

    def __init__(self, session: Session, epoch: int) -> None:
        self.wanted: Iterable[Wanted] = tuple(session.partitions.values())
        self._session = session
        self._epoch = epoch

    def answer(self, results: list[Result]) -> FetchAnswer:
        session = self._session
        if session.epoch != next_epoch(self._epoch):
            # Another request of the same session has come over another connection meanwhile.
            return FetchAnswer(session.id, [], Code.INVALID_FETCH_SESSION_EPOCH)
        told = [result for result in results if session.tell(result[0], result[1])]
        return FetchAnswer(session.id, told)
