from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.fetching.session import FetchPartition, FetchSession, PartitionKey
from coordinator.fetching.session_cache import EVICTION_MS, FetchSessionCache

OLD = EVICTION_MS + 1


def partitions(size: int) -> dict[PartitionKey, FetchPartition]:
    return {("t", index): FetchPartition("t", index, 0, 1) for index in range(size)}


def sessions(slots: int) -> FetchSessionCache:
    ids = count(1)
    return FetchSessionCache(slots, lambda: next(ids))


def create(found: FetchSessionCache, size: int, now_ms: int) -> FetchSession | None:
    return found.try_create_session(partitions(size), uses_topic_ids=False, now_ms=now_ms)


def filled(*sizes: int) -> tuple[FetchSessionCache, list[FetchSession]]:
    """Fill a cache with sessions of these sizes, made at time 0, so that no slot is left."""
    found = sessions(len(sizes))
    made = [create(found, size, 0) for size in sizes]
    return found, [session for session in made if session is not None]


def test_an_id_is_never_0_nor_that_of_another_session() -> None:
    numbers = iter([0, 5, 1 << 31, 5 | 1 << 40, 6])
    found = FetchSessionCache(2, lambda: next(numbers))
    ids = [session.id for session in (create(found, 1, 0), create(found, 1, 0)) if session]
    assert ids == [5, 6]


def test_while_all_sessions_are_young_a_newcomer_goes_without() -> None:
    found, _ = filled(1, 1)
    assert create(found, 100, EVICTION_MS) is None
    assert len(found) == 2


def test_without_slots_there_are_no_sessions() -> None:
    assert create(sessions(0), 1, 0) is None


def test_the_session_that_was_used_least_recently_gives_way_when_that_is_long_ago() -> None:
    found, [one, two] = filled(9, 9)
    found.touch_session(one, 5)
    assert create(found, 1, OLD) is not None
    assert found.find_session(two.id) is None
    assert found.find_session(one.id) is one


@pytest.mark.parametrize(("size", "evicted"), [(2, None), (3, 2), (9, 2)])
def test_an_old_session_gives_way_to_one_with_more_partitions(
    size: int, evicted: int | None
) -> None:
    found, made = filled(3, 2, 5)
    for session in made:
        found.touch_session(session, OLD)
    assert (create(found, size, OLD) is not None) == (evicted is not None)
    left = [
        len(session.partitions) for session in made if found.find_session(session.id) is session
    ]
    assert left == [each for each in (3, 2, 5) if each != evicted]


def test_a_session_counts_with_as_many_partitions_as_it_has_now() -> None:
    found, [one, two] = filled(3, 2)
    for session in (one, two):
        found.touch_session(session, OLD)
    one.partitions.popitem()
    one.partitions.popitem()
    found.touch_session(one, OLD)
    assert create(found, 2, OLD) is not None
    assert found.find_session(one.id) is None


@given(
    st.lists(st.tuples(st.sampled_from("cctr"), st.integers(0, 7), st.integers(0, 4)), max_size=60)
)
def test_slots_and_ways_to_give_way_agree_with_a_plain_search(
    steps: list[tuple[str, int, int]],
) -> None:
    """Check the cache against a linear search over all sessions; Kafka has sorted maps."""
    found = sessions(4)
    known: list[FetchSession] = []  # the least recently used first
    old: dict[int, int] = {}  # id -> partitions when it was last touched at an age above the limit
    now_ms = 0
    for step, which, size in steps:
        now_ms += EVICTION_MS // 3
        if step == "c":
            victim = victim_of(known, old, size, now_ms) if len(known) == 4 else None
            session = create(found, size, now_ms)
            assert (session is not None) == (len(known) < 4 or victim is not None)
            if victim is not None:
                known.remove(victim)
                old.pop(victim.id, None)
            if session is not None:
                known.append(session)
        elif known:
            session = known[which % len(known)]
            known.remove(session)
            if step == "r":
                found.remove_session(session.id)
                old.pop(session.id, None)
                continue
            session.partitions = partitions(size)
            found.touch_session(session, now_ms)
            known.append(session)
            if now_ms - session.created_at_ms > EVICTION_MS:
                old[session.id] = size
        assert len(found) == len(known)
        assert all(found.find_session(session.id) is session for session in known)


def victim_of(
    known: list[FetchSession], old: dict[int, int], size: int, now_ms: int
) -> FetchSession | None:
    if now_ms - known[0].last_used_at_ms > EVICTION_MS:
        return known[0]
    smallest = min(old.items(), key=lambda item: (item[1], item[0]), default=None)
    if smallest is None or smallest[1] >= size:
        return None
    return next(session for session in known if session.id == smallest[0])
