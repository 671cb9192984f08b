"""Cache a broker's fetch sessions in a number of slots, and decide which one gives way.

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

from coordinator.fetching.session import NO_SESSION, FetchPartition, FetchSession, PartitionKey

EVICTION_MS = 120_000


class FetchSessionCache:
    """Holds fetch sessions by id, the least recently used first."""

    def __init__(self, slot_count: int, new_id: Callable[[], int]) -> None:
        """Create an empty cache; the low 31 bits of `new_id()` become a session's id."""
        self._slot_count = slot_count
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}
        self._evictable: list[tuple[int, int]] = []  # (partitions, id), sorted

    def __len__(self) -> int:
        return len(self._sessions)

    def find_session(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def try_create_session(
        self, partitions: dict[PartitionKey, FetchPartition], uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        """Create a session, evicting another if need be; return None if no slot can be had."""
        if len(self._sessions) >= self._slot_count and not self._try_evict(len(partitions), now_ms):
            return None
        session = FetchSession(self._create_session_id(), partitions, uses_topic_ids, now_ms)
        self._sessions[session.id] = session
        return session

    def touch_session(self, session: FetchSession, now_ms: int) -> None:
        """Mark a session as used now, and note its number of partitions for evictions."""
        del self._sessions[session.id]
        self._sessions[session.id] = session
        session.last_used_at_ms = now_ms
        size = len(session.partitions)
        if now_ms - session.created_at_ms > EVICTION_MS and session.evictable_size != size:
            self._remove_evictable_entry(session)
            session.evictable_size = size
            insort(self._evictable, (size, session.id))

    def remove_session(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._remove_evictable_entry(session)

    def _try_evict(self, size: int, now_ms: int) -> bool:
        """Evict a session in favour of one of `size` partitions; return False if none may go."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_at_ms > EVICTION_MS:
            self.remove_session(oldest.id)
            return True
        if self._evictable and self._evictable[0][0] < size:
            self.remove_session(self._evictable[0][1])
            return True
        return False

    def _remove_evictable_entry(self, session: FetchSession) -> None:
        if session.evictable_size >= 0:
            del self._evictable[bisect_left(self._evictable, (session.evictable_size, session.id))]
            session.evictable_size = -1

    def _create_session_id(self) -> int:
        while True:
            session_id = self._new_id() & 0x7FFF_FFFF
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id
