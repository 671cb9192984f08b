"""Test when a full cache stops taking what is written: while the keys hardly ever come again."""

from __future__ import annotations

from itertools import count

import pytest

from state.cache import ObjectCache
from tests.unit.state.test_cache import CountingDisk, Store, commit, fill, store_on

WRITES = 1_000


class Written:
    """Holds a store whose cache has room for about `room` entries, and new keys for it."""

    def __init__(self, room: int = 500) -> None:
        self.disk = CountingDisk()
        self.cache = ObjectCache(room * 400)
        self.store: Store = store_on(self.disk, self.cache)
        self._numbers = count()

    def commit_new_keys(self, keys: int = WRITES) -> list[str]:
        names = [f"{next(self._numbers):08}" for _ in range(keys)]
        fill(self.store, names)
        return names

    def find_cached(self, names: list[str]) -> list[str]:
        """Return those of the names that are read without the disk."""
        return [name for name in names if self._is_cached(name)]

    def _is_cached(self, name: str) -> bool:
        return name.encode() in self.store._cached.entries


def test_a_full_cache_takes_no_keys_that_do_not_come_again_but_of_every_16th_commit() -> None:
    written = Written()
    cached = [bool(written.find_cached(written.commit_new_keys())) for _ in range(40)]
    assert cached == [True] + 2 * ([False] * 15 + [True]) + [False] * 7


def test_a_cache_that_is_not_full_takes_all_keys() -> None:
    written = Written(room=40 * WRITES)
    assert all(written.find_cached(names) == names for names in new_keys_of(written, 20))


def new_keys_of(written: Written, commits: int) -> list[list[str]]:
    return [written.commit_new_keys() for _ in range(commits)]


def test_keys_that_come_again_are_taken_from_the_next_try_on() -> None:
    written = Written(room=2 * WRITES)
    new_keys_of(written, 5)
    hot = [f"hot {number}" for number in range(WRITES)]
    cached = []
    for _ in range(20):
        fill(written.store, hot)
        cached.append(len(written.find_cached(hot)))
    assert cached[0] == 0
    assert cached[-5:] == [WRITES] * 5
    written.disk.gets = 0
    for name in hot:
        written.store.get_entry_for_update(name)
    assert written.disk.gets == 0


def test_what_was_cached_before_is_kept_up_to_date_meanwhile() -> None:
    written = Written()
    old = written.find_cached(written.commit_new_keys())
    assert written.find_cached(written.commit_new_keys()) == []
    changed, deleted = old[-1], old[-2]
    written.store.put(changed, "other")
    written.store.delete(deleted)
    written.store.delete("never there")
    commit(written.store)
    assert written.find_cached([changed, deleted]) == [changed]
    assert [written.store.get(name) for name in (changed, deleted)] == ["other", None]
    counted = written.cache.used_bytes
    written.store._cached.recount_bytes()
    assert written.cache.used_bytes == counted


@pytest.mark.parametrize(("found", "admits"), [(62, False), (63, True)])
def test_one_write_in_16_has_to_be_found(found: int, admits: bool) -> None:
    cached = ObjectCache(1_000).add_store_cache()
    cached.choose_caching_by_use(WRITES, found, is_full=True)
    assert cached.admits_new is admits


def test_few_writes_are_no_ground_to_judge() -> None:
    cached = ObjectCache(1_000).add_store_cache()
    cached.choose_caching_by_use(WRITES - 1, 0, is_full=True)
    assert cached.admits_new
    cached.choose_caching_by_use(1, 0, is_full=True)
    assert not cached.admits_new
