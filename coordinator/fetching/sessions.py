"""Caches a broker's fetch sessions in a number of slots, and decides which one gives way.

A client that disconnects doesn't end its session, so a session lives until its slot is needed. The
slot is taken from the session that was used least recently, if that is longer ago than EVICTION_MS;
otherwise from the session with the fewest partitions among those older than EVICTION_MS, if the new
one has more: a session saves the more, the more partitions it has. If neither is evicted, the
client of the new one gets no session and sends full requests.

It differs from Kafka: there are no followers, whose sessions come first; and there is one cache
(Kafka has 8 shards, each with its own order of use).
Source: KIP-227; kafka.server.FetchSessionCache.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

from coordinator.fetching.session import NO_SESSION, Key, Session, Wanted

EVICTION_MS = 120_000


class Sessions:
    """Holds fetch sessions by id, the least recently used first."""

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        """Create an empty cache; the low 31 bits of `new_id()` become a session's id."""
        self._slots = slots
        self._new_id = new_id
        self._sessions: dict[int, Session] = {}
        self._evictable: list[tuple[int, int]] = []  # (partitions, id), sorted

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> Session | None:
        return self._sessions.get(session_id)

    def create(self, partitions: dict[Key, Wanted], uses_ids: bool, now_ms: int) -> Session | None:
        """Create a session, or return None if there is no slot for it."""
        if len(self._sessions) >= self._slots and not self._evict_for(len(partitions), now_ms):
            return None
        session = Session(self._unused_id(), partitions, uses_ids, now_ms)
        self._sessions[session.id] = session
        return session

    def touch(self, session: Session, now_ms: int) -> None:
        """Mark a session as used now, and note its number of partitions for evictions."""
        del self._sessions[session.id]
        self._sessions[session.id] = session
        session.last_used_ms = now_ms
        size = len(session.partitions)
        if now_ms - session.created_ms > EVICTION_MS and session.evictable_size != size:
            self._not_evictable(session)
            session.evictable_size = size
            insort(self._evictable, (size, session.id))

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._not_evictable(session)

    def _evict_for(self, size: int, now_ms: int) -> bool:
        """Evict a session for one of `size` partitions and return whether one could be."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            self.remove(oldest.id)
            return True
        if self._evictable and self._evictable[0][0] < size:
            self.remove(self._evictable[0][1])
            return True
        return False

    def _not_evictable(self, session: Session) -> None:
        if session.evictable_size >= 0:
            del self._evictable[bisect_left(self._evictable, (session.evictable_size, session.id))]
            session.evictable_size = -1

    def _unused_id(self) -> int:
        while True:
            session_id = self._new_id() & 0x7FFF_FFFF
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id
