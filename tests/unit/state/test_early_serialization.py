"""Test that early serialization of a store differs only in when a serde refuses a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state.cache import ObjectCache
from state.errors import StoreSerdeError
from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.segmented import WindowSettings
from state.session import SessionStore
from state.state_serdes import StoreCodecs
from state.store_checkpoint import StoreCheckpoint
from state.ttl_store import TtlStore
from state.window import WindowStore
from state.windowed import Windowed
from streams import serdes

POISON = "poison"


def refusing(value: Any) -> bytes:
    if POISON in value:
        raise ValueError("too strong")
    return serdes.json.serialize(value)


CODECS = StoreCodecs(
    serdes.string.serialize, serdes.string.deserialize, refusing, serdes.json.deserialize
)
WINDOWS = WindowSettings(1_000, window_size_ms=10)


class Pair:
    """Applies every operation to two stores of one kind, one of which serialises early."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.disks = MemoryDisk(), MemoryDisk()
        self.late, self.early = map(make, self.disks)
        self.refused: list[int] = []
        self.early.serialize_early(lambda: self.refused.append(1))
        self.position = 0

    def same(self, ask: Callable[[Any], Any]) -> Any:
        late, early = ask(self.late), ask(self.early)
        assert early == late
        assert self.early.serialize_mutated_objects() == []
        assert self.late.serialize_mutated_objects() == []
        return late

    def commit(self) -> None:
        self.position += 1
        late, early = self.late.drain_writes(), self.early.drain_writes()
        assert early == late
        for store in (self.late, self.early):
            store.commit(StoreCheckpoint(self.position, "t"))
        first, second = ([*disk.range(None, None)] for disk in self.disks)
        assert first == second
        assert self.disks[0].read_checkpoint() == self.disks[1].read_checkpoint()


def cache() -> ObjectCache:
    return ObjectCache(1 << 20)


def key_value(disk: Any) -> Any:
    return KeyValueStore("s", disk, CODECS, cache=cache())


KEYS = {
    "key-value": key_value,
    "with a ttl": lambda disk: TtlStore("s", disk, CODECS, cache=cache(), ttl_ms=50),
    "windows": lambda disk: WindowStore("s", disk, CODECS, WINDOWS, cache=cache()),
    "windows, by time": lambda disk: WindowStore(
        "s", disk, CODECS, WINDOWS._replace(by_time=True), cache=cache()
    ),
    "sessions": lambda disk: SessionStore("s", disk, CODECS, WindowSettings(1_000), cache=cache()),
}
ACTS = ("put", "update", "in place", "delete", "read", "all", "commit", "rollback")


@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_writes_and_reads_the_same(kind: str, data: Any) -> None:
    pair = Pair(KEYS[kind])
    acts = data.draw(st.lists(st.sampled_from(ACTS), max_size=25))
    for number, act in enumerate(acts):
        key = data.draw(st.sampled_from(["a", "b", "bb"]))
        at_ms = data.draw(st.integers(0, 200))
        place: Any = Windowed(key, at_ms - at_ms % 10, at_ms - at_ms % 10 + 10)
        value = [str(number)]
        if act == "commit":
            pair.commit()
        elif act == "rollback":
            pair.late.rollback_transaction()
            pair.early.rollback_transaction()
        elif act == "all":
            pair.same(lambda store: list(store.all()))
        else:
            pair.same(lambda store: done(store, kind, act, place, at_ms, list(value)))  # noqa: B023
    pair.commit()
    assert not pair.refused


def done(store: Any, kind: str, act: str, place: Any, at_ms: int, value: list[str]) -> Any:
    """Apply one operation to a store, and return its result."""
    windows, sessions = kind.startswith("windows"), kind == "sessions"
    if act in ("put", "delete"):
        put = None if act == "delete" else value
        if windows:
            return store.put(place.key, put, place.start_ms, at_ms)
        return store.put(place if sessions else place.key, put, at_ms)
    if act == "update":
        if isinstance(store, TtlStore) and not store.try_admit_write(at_ms, deletes=False):
            return None
        entry = (
            store.get_entry_for_update(place.key, place.start_ms)
            if windows
            else store.get_entry_for_update(place if sessions else place.key)
        )
        if entry is None:
            return None
        was = None if entry.value is None else list(entry.value)
        so_far = entry.value or []
        so_far += value
        entry.value, entry.timestamp_ms = so_far, at_ms
        return was
    found = (
        store.fetch(place.key, place.start_ms)
        if windows
        else store.fetch_session(place.key, place.start_ms, place.end_ms)
        if sessions
        else store.get(place.key)
    )
    if act == "in place" and found is not None:
        found.append("changed")
        return None
    return found


def test_a_put_that_is_refused_leaves_what_was_there() -> None:
    pair = Pair(key_value)
    store = pair.early
    store.put("a", ["fine"], 1)
    for value in ([POISON], store.get("a")):
        value.append(POISON)
        with pytest.raises(
            StoreSerdeError, match=r"store 's' can't take value .*poison.* \(list\)"
        ):
            store.put("a", value, 2)
        assert store.entry("a") == (["fine"], 1)
    assert store.serialize_mutated_objects() == []
    assert store.drain_writes() == [(b"a", b'["fine"]', 1)]
    assert len(pair.refused) == 2


def test_an_update_that_is_refused_writes_no_key() -> None:
    store = Pair(key_value).early
    entry = store.get_entry_for_update("a")
    with pytest.raises(StoreSerdeError):
        entry.value = [POISON]
    assert store.get("a") is None
    assert store.drain_writes() == []


def test_what_was_changed_in_place_to_what_is_refused_is_taken_back() -> None:
    store = Pair(key_value).early
    store.put("a", ["fine"], 1)
    store.serialize_mutated_objects()
    store.get("a").append(POISON)
    ((key, value, error),) = store.serialize_mutated_objects()
    assert (key, value) == ("a", ["fine", POISON])
    assert "can't take value" in str(error)
    assert store.get("a") == ["fine"]
    assert store.drain_writes() == [(b"a", b'["fine"]', 1)]


def test_an_object_that_nobody_asked_for_is_refused_when_all_is_serialised() -> None:
    store = Pair(key_value).early
    kept = ["fine"]
    store.put("a", kept, 1)
    store.serialize_mutated_objects()
    kept.append(POISON)
    assert store.serialize_mutated_objects() == []
    with pytest.raises(StoreSerdeError):
        store.drain_writes()


def test_nothing_is_kept_in_the_cache_meanwhile_and_all_is_read_right_after() -> None:
    pair = Pair(key_value)
    for number in range(3):
        pair.same(lambda store: store.get("a"))
        pair.same(lambda store: store.put("a", [str(number)], number))  # noqa: B023
        pair.commit()
    pair.early.serialize_early(None)
    assert pair.same(lambda store: store.entry("a")) == (["2"], 2)
    pair.same(lambda store: store.put("a", ["3"], 3))
    pair.commit()
    pair.early.put("a", [POISON], 4)
    with pytest.raises(StoreSerdeError):
        pair.early.drain_writes()


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("value", ["text", ["a list"]])
def test_a_machine_without_memory_is_no_refusal(value: Any, *, early: bool) -> None:
    """Test that a MemoryError is not given to a handler that skips refused values."""

    def exhausted(value: Any) -> bytes:
        raise MemoryError

    store: Any = KeyValueStore("s", MemoryDisk(), CODECS._replace(encode_value=exhausted))
    if early:
        store.serialize_early(lambda: None)
    with pytest.raises(MemoryError):
        put_and_drain(store, value)


def put_and_drain(store: Any, value: Any) -> None:
    store.put("a", value, 1)
    store.drain_writes()
