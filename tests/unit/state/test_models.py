"""Test every kind of store against a plain model: writes, reads, commits, rollbacks, crashes.

A model keeps what is committed and what the transaction has written as plain dicts, and answers by
going through all of it. After each commit the changelog so far, replayed into an empty store, gives
the same store; a crash loses the transaction, or what the disk had of it but not its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from state.cache import ObjectCache
from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.segmented import WindowSettings
from state.session import SessionStore
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.ttl_store import TtlStore
from state.versioned import NOT_PUT, VALID_TO_UNDEFINED, VersionedRecord, VersionedStore
from state.window import WindowStore
from state.window_duplicates import DuplicatesWindowStore
from state.windowed import Windowed

CODECS = StoreCodecs(bytes, bytes, orjson.dumps, orjson.loads)
RETENTION_MS = 200_000
SIZE_MS = 10
MODELS = settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# Keys that are prefixes of others, and whose bytes look like times.
KEYS = st.sampled_from(
    [b"a", b"aa", b"a\0", b"a\0\0\0\0\0\0\0\0", b"b", b"b\xff", b"\xff", b"", b"\0", b"a\x7f"]
)
TIMES = st.integers(0, 12).map(lambda n: n * 40_007) | st.integers(0, 30)
VALUES = st.none() | st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=2)


class Life:
    """Takes a store, its changelog and its disk through commits, rollbacks and crashes."""

    def __init__(
        self, open_store: Callable[[StoreDisk, ObjectCache], Any], disk: StoreDisk
    ) -> None:
        self._open = open_store
        self.disk = disk
        self.cache = ObjectCache(3_000)
        self.store = open_store(disk, self.cache)
        self.changelog: list[ChangelogEntry] = []

    def commit(self) -> None:
        self.changelog += self.store.drain_writes()
        self.store.commit(StoreCheckpoint(len(self.changelog), "t"))

    def rollback(self) -> None:
        self.store.drain_writes()
        self.store.rollback_transaction()

    def crash(self, committed: bool) -> None:
        """Reopen the store as after a crash before Kafka's commit or between it and the disk's."""
        drained = self.store.drain_writes()
        if committed:
            self.changelog += drained
        self.cache = ObjectCache(3_000)
        self.store = self._open(self.disk, self.cache)
        self.catch_up(self.store)

    def catch_up(self, store: Any) -> None:
        checkpoint = store.read_checkpoint()
        position = 0 if checkpoint is None else checkpoint.position
        behind = self.changelog[position:]
        for start in range(0, len(behind), 3):
            part = behind[start : start + 3]
            store.replay_changelog(part, StoreCheckpoint(position + start + len(part), "t"))
        store.finish_restore()

    def rebuilt(self) -> Any:
        """Return a store that was restored from the changelog alone."""
        store = self._open(MemoryDisk(), ObjectCache(0))
        self.catch_up(store)
        return store


@pytest.fixture(params=["memory", "rocksdb"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreDisk]:
    disk: StoreDisk = MemoryDisk() if request.param == "memory" else RocksDisk(tmp_path / "db")
    yield disk
    disk.close()


OUTCOMES = st.sampled_from(["commit", "commit", "commit", "rollback", "crash", "crash late"])


class Model:
    """Represents committed and uncommitted contents and the stream time in plain dicts."""

    def __init__(self) -> None:
        self.now: dict[Any, Any] = {}
        self.committed: dict[Any, Any] = {}
        self.stream_time = self.committed_stream_time = -1

    def end(self, life: Life, outcome: str) -> None:
        match outcome:
            case "commit":
                life.commit()
            case "rollback":
                life.rollback()
            case "crash":
                life.crash(committed=False)
            case "crash late":
                life.crash(committed=True)
        if outcome in ("commit", "crash late"):
            self.committed = orjson_copy(self.now)
            self.committed_stream_time = self.stream_time
        else:
            self.now = orjson_copy(self.committed)
            self.stream_time = self.committed_stream_time

    def advance(self, time_ms: int, kept_ms: int) -> bool:
        self.stream_time = max(self.stream_time, time_ms)
        return time_ms > self.stream_time - kept_ms


def orjson_copy(values: dict[Any, Any]) -> dict[Any, Any]:
    return {key: orjson.loads(orjson.dumps(value)) for key, value in values.items()}


# Key-value

KEY_VALUE_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "update", "delete", "put_if_absent", "get and change"]),
        KEYS,
        VALUES,
    ),
    max_size=12,
)


@MODELS
@given(
    transactions=st.lists(st.tuples(KEY_VALUE_STEPS, OUTCOMES), max_size=5),
    first=st.none() | KEYS,
    last=st.none() | KEYS,
)
def test_a_key_value_store_is_a_sorted_dict(
    disk: StoreDisk,
    transactions: list[tuple[list[tuple[str, bytes, Any]], str]],
    first: bytes | None,
    last: bytes | None,
) -> None:
    disk.clear_all_data()
    life = Life(lambda disk, cache: KeyValueStore("s", disk, CODECS, cache=cache), disk)
    model = Model()
    for steps, outcome in transactions:
        for step, key, value in steps:
            key_value_step(life.store, model.now, step, key, value)
        check_key_value(life.store, model.now, first, last)
        model.end(life, outcome)
        check_key_value(life.store, model.now, first, last)
        check_key_value(life.rebuilt(), model.now, first, last)


def key_value_step(
    store: KeyValueStore[bytes, Any], model: dict[bytes, Any], step: str, key: bytes, value: Any
) -> None:
    match step:
        case "put":
            store.put(key, value, 1)
            model[key] = value
        case "update":
            entry = store.get_entry_for_update(key)
            assert entry.value == model.get(key)
            if isinstance(entry.value, list):
                entry.value.append(7)  # in place, as an aggregator may
            else:
                entry.value = value
            entry.timestamp_ms = 1
            model[key] = orjson.loads(orjson.dumps(entry.value))
        case "delete":
            assert store.delete(key, 1) == model.pop(key, None)
        case "put_if_absent":
            assert store.put_if_absent(key, value, 1) == model.get(key)
            model.setdefault(key, value)
        case "get and change":
            found = store.get(key)
            assert found == model.get(key)
            if isinstance(found, list) and key not in {
                entry.key for entry in store.list_written_entries()
            }:
                found.append(8)  # The change is not written, so no reader may see it.
    if model.get(key) is None:
        model.pop(key, None)
    # User code may change its object later, which must not change the model's.
    if key in model:
        model[key] = orjson.loads(orjson.dumps(model[key]))


def check_key_value(
    store: KeyValueStore[bytes, Any],
    model: dict[bytes, Any],
    first: bytes | None,
    last: bytes | None,
) -> None:
    everything = sorted(model.items())
    assert list(store.all()) == everything
    assert list(store.reverse_all()) == everything[::-1]
    inside = [
        (key, value)
        for key, value in everything
        if (first is None or key >= first) and (last is None or key <= last)
    ]
    assert list(store.range(first, last)) == inside
    assert list(store.reverse_range(first, last)) == inside[::-1]
    prefix = first or b""
    assert list(store.prefix_scan(prefix)) == [e for e in everything if e[0].startswith(prefix)]
    for key in (b"a", b"b", b""):
        assert store.get(key) == model.get(key)


# Values that expire

EXPIRING_STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "update", "delete"]), KEYS, TIMES, VALUES), max_size=12
)


@MODELS
@given(transactions=st.lists(st.tuples(EXPIRING_STEPS, OUTCOMES), max_size=6))
@example(
    transactions=[
        ([("put", b"a", 40_007, None), ("put", b"a", 0, None)], "crash late"),
        ([], "rollback"),
    ]
)
def test_a_store_with_a_time_to_live_is_a_dict_that_forgets(
    disk: StoreDisk, transactions: list[tuple[list[tuple[str, bytes, int, Any]], str]]
) -> None:
    disk.clear_all_data()
    life = Life(
        lambda disk, cache: TtlStore("s", disk, CODECS, ttl_ms=RETENTION_MS, cache=cache),
        disk,
    )
    model = Model()
    for steps, outcome in transactions:
        for step, key, timestamp_ms, value in steps:
            if step == "update":
                life.store.advance_stream_time(timestamp_ms)
                model.advance(timestamp_ms, RETENTION_MS)
                entry = life.store.get_entry_for_update(key)
                assert entry.value == live_values(model).get(key)
                entry.value, entry.timestamp_ms = value, timestamp_ms
                model.now[key] = [value, timestamp_ms]
            elif step == "delete" or value is None:
                assert life.store.delete(key, timestamp_ms) == live_values(model).get(key)
                model.advance(timestamp_ms, RETENTION_MS)
                model.now[key] = [None, timestamp_ms]
            else:
                life.store.put(key, value, timestamp_ms)
                if model.advance(timestamp_ms, RETENTION_MS):
                    model.now[key] = [value, timestamp_ms]
        assert dict(life.store.all()) == live_values(model)
        model.end(life, outcome)
        rebuilt = life.rebuilt()
        # A task sets the stream time when it starts, from its offsets: after a crash or a rollback.
        for store in (rebuilt,) if outcome == "commit" else (life.store, rebuilt):
            store.advance_stream_time(model.stream_time)
        for store in (life.store, rebuilt):
            assert store.stream_time_ms == model.stream_time
            assert list(store.all()) == sorted(live_values(model).items())
            assert list(store.reverse_all()) == sorted(live_values(model).items())[::-1]
            assert {k: v for k in (b"a", b"b") if (v := store.get(k)) is not None} == {
                k: v for k, v in live_values(model).items() if k in (b"a", b"b")
            }


def live_values(model: Model) -> dict[bytes, Any]:
    return {
        key: value
        for key, (value, timestamp_ms) in model.now.items()
        if value is not None and timestamp_ms > model.stream_time - RETENTION_MS
    }


# Windows

WINDOW_STEPS = st.lists(st.tuples(KEYS, TIMES, VALUES, st.booleans()), max_size=12)


@MODELS
@given(
    transactions=st.lists(st.tuples(WINDOW_STEPS, OUTCOMES), max_size=5),
    bounds=st.tuples(st.none() | KEYS, st.none() | KEYS),
    times=st.tuples(TIMES, TIMES),
)
def test_a_window_store_is_a_dict_of_windows_that_forgets(
    disk: StoreDisk,
    transactions: list[tuple[list[tuple[bytes, int, Any, bool]], str]],
    bounds: tuple[bytes | None, bytes | None],
    times: tuple[int, int],
) -> None:
    disk.clear_all_data()

    def opened(disk: StoreDisk, cache: ObjectCache) -> WindowStore[Any]:
        return WindowStore(
            "w", disk, CODECS, WindowSettings(RETENTION_MS, window_size_ms=SIZE_MS), cache=cache
        )

    life, model = Life(opened, disk), Model()
    for steps, outcome in transactions:
        for key, start_ms, value, in_place in steps:
            dropped = life.store.dropped
            arrived = model.advance(start_ms, RETENTION_MS)
            if in_place:
                entry = life.store.get_entry_for_update(key, start_ms)
                assert (entry is not None) == arrived
                if entry is not None:
                    assert entry.value == model.now.get((key, start_ms))
                    entry.value, entry.timestamp_ms = value, 1
            else:
                life.store.put(key, value, start_ms, 1)
            assert life.store.dropped == dropped + (not arrived)
            if arrived:
                model.now[key, start_ms] = value
        check_windows(life.store, model, bounds, times)
        model.end(life, outcome)
        check_windows(life.store, model, bounds, times)
        check_windows(life.rebuilt(), model, bounds, times)


def check_windows(
    store: WindowStore[Any],
    model: Model,
    bounds: tuple[bytes | None, bytes | None],
    times: tuple[int, int],
) -> None:
    live = {
        (key, start): value
        for (key, start), value in sorted(model.now.items())
        if value is not None and start > model.stream_time - RETENTION_MS
    }
    from_ms, to_ms = times
    for key in (b"a", b"a\0", b""):
        of_key = [(start, value) for (k, start), value in live.items() if k == key]
        within = [(start, value) for start, value in of_key if from_ms <= start <= to_ms]
        assert list(store.fetch(key, from_ms, to_ms)) == within
        assert list(store.backward_fetch(key, from_ms, to_ms)) == within[::-1]
        assert list(store.fetch(key, 0, 2**63 - 1)) == of_key
        assert store.fetch(key, from_ms) == live.get((key, from_ms))
    first, last = bounds
    inside = {
        (key, start): value
        for (key, start), value in live.items()
        if (first is None or key >= first)
        and (last is None or key <= last)
        and from_ms <= start <= to_ms
    }
    for found in (
        list(store.fetch_range(first, last, from_ms, to_ms)),
        list(store.backward_fetch_range(first, last, from_ms, to_ms))[::-1],
    ):
        assert unwindowed(found) == inside
        assert in_order_by_key(found)
    assert unwindowed(list(store.all())) == live
    assert unwindowed(list(store.backward_all())) == live
    assert unwindowed(list(store.fetch_all(from_ms, to_ms))) == {
        (key, start): value for (key, start), value in live.items() if from_ms <= start <= to_ms
    }


def unwindowed(found: list[tuple[Windowed[bytes], Any]]) -> dict[tuple[bytes, int], Any]:
    assert all(window.end_ms == window.start_ms + SIZE_MS for window, _ in found)
    values = {(window.key, window.start_ms): value for window, value in found}
    assert len(values) == len(found)
    return values


def in_order_by_key(found: list[tuple[Windowed[bytes], Any]]) -> bool:
    latest: dict[bytes, int] = {}
    for window, _ in found:
        if latest.get(window.key, -1) >= window.start_ms:
            return False
        latest[window.key] = window.start_ms
    return True


@MODELS
@given(transactions=st.lists(st.tuples(WINDOW_STEPS, OUTCOMES), max_size=5))
def test_a_window_store_with_duplicates_keeps_all_values_of_a_key_and_window(
    disk: StoreDisk, transactions: list[tuple[list[tuple[bytes, int, Any, bool]], str]]
) -> None:
    disk.clear_all_data()

    def opened(disk: StoreDisk, cache: ObjectCache) -> WindowStore[Any]:
        return DuplicatesWindowStore(
            "w", disk, CODECS, WindowSettings(RETENTION_MS, window_size_ms=SIZE_MS)
        )

    life, model = Life(opened, disk), Model()
    for steps, outcome in transactions:
        for key, start_ms, value, _ in steps:
            life.store.put(key, value, start_ms, 1)
            if value is not None and model.advance(start_ms, RETENTION_MS):
                model.now[key, start_ms, len(model.now)] = value
        model.end(life, outcome)
        for store in (life.store, life.rebuilt()):
            for wanted in (b"a", b""):
                expected = [
                    (start, value)
                    for (key, start, _), value in sorted(model.now.items(), key=lambda e: e[0])
                    if key == wanted and start > model.stream_time - RETENTION_MS
                ]
                assert list(store.fetch(wanted, 0, 2**63 - 1)) == expected


# Sessions

SESSION_STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "remove"]), KEYS, TIMES, TIMES, VALUES), max_size=12
)


@MODELS
@given(
    transactions=st.lists(st.tuples(SESSION_STEPS, OUTCOMES), max_size=5),
    bounds=st.tuples(st.none() | KEYS, st.none() | KEYS),
    times=st.tuples(TIMES, TIMES),
)
def test_a_session_store_is_a_dict_of_sessions_that_forgets(
    disk: StoreDisk,
    transactions: list[tuple[list[tuple[str, bytes, int, int, Any]], str]],
    bounds: tuple[bytes | None, bytes | None],
    times: tuple[int, int],
) -> None:
    disk.clear_all_data()
    life = Life(
        lambda disk, cache: SessionStore(
            "s", disk, CODECS, WindowSettings(RETENTION_MS), cache=cache
        ),
        disk,
    )
    model = Model()
    for steps, outcome in transactions:
        for step, key, one_ms, other_ms, value in steps:
            start_ms, end_ms = sorted((one_ms, other_ms))
            session = Windowed(key, start_ms, end_ms)
            if step == "remove":
                life.store.remove(session, 1)
                value = None
            else:
                life.store.put(session, value, 1)
            if model.advance(end_ms, RETENTION_MS):
                model.now[key, end_ms, start_ms] = value
        check_sessions(life.store, model, bounds, times)
        model.end(life, outcome)
        check_sessions(life.store, model, bounds, times)
        check_sessions(life.rebuilt(), model, bounds, times)


def check_sessions(
    store: SessionStore[Any],
    model: Model,
    bounds: tuple[bytes | None, bytes | None],
    times: tuple[int, int],
) -> None:
    live = [
        (Windowed(key, start, end), value)
        for (key, end, start), value in sorted(model.now.items(), key=lambda e: e[0])
        if value is not None and end > model.stream_time - RETENTION_MS
    ]
    earliest_end, latest_start = times
    for key in (b"a", b"a\0", b""):
        of_key = [each for each in live if each[0].key == key]
        assert list(store.fetch(key)) == of_key
        assert list(store.backward_fetch(key)) == of_key[::-1]
        joined = [
            (session, value)
            for session, value in of_key
            if session.end_ms >= earliest_end and session.start_ms <= latest_start
        ]
        assert list(store.find_sessions(key, *times)) == joined
        assert list(store.backward_find_sessions(key, *times)) == joined[::-1]
        for session, value in of_key:
            assert store.fetch_session(key, session.start_ms, session.end_ms) == value
    first, last = bounds
    in_bounds = [
        (session, value)
        for session, value in live
        if (first is None or session.key >= first) and (last is None or session.key <= last)
    ]
    found = list(store.fetch_range(first, last))
    assert sorted(found, key=by_session) == sorted(in_bounds, key=by_session)
    assert list(store.backward_fetch_range(first, last)) == found[::-1]
    assert sorted(store.all(), key=by_session) == sorted(live, key=by_session)
    ended = [each for each in live if times[0] <= each[0].end_ms <= times[1]]
    assert sorted(store.find_ended(*times), key=by_session) == sorted(ended, key=by_session)


def by_session(found: tuple[Windowed[bytes], Any]) -> tuple[bytes, int, int]:
    return found[0].key, found[0].end_ms, found[0].start_ms


# Versions

VERSION_STEPS = st.lists(st.tuples(KEYS, TIMES, VALUES), max_size=12)


@MODELS
@given(
    transactions=st.lists(st.tuples(VERSION_STEPS, OUTCOMES), max_size=5),
    asked=st.lists(TIMES, min_size=3, max_size=3),
)
def test_a_versioned_store_knows_what_was_valid_when(
    disk: StoreDisk, transactions: list[tuple[list[tuple[bytes, int, Any]], str]], asked: list[int]
) -> None:
    disk.clear_all_data()
    life = Life(
        lambda disk, cache: VersionedStore("v", disk, CODECS, history_ms=RETENTION_MS, cache=cache),
        disk,
    )
    model = Model()
    for steps, outcome in transactions:
        for key, timestamp_ms, value in steps:
            late = timestamp_ms < model.stream_time - RETENTION_MS
            until = life.store.put(key, value, timestamp_ms)
            if late:
                assert until == NOT_PUT
                continue
            model.advance(timestamp_ms, RETENTION_MS)
            model.now[key, timestamp_ms] = value
            later = [t for k, t in model.now if k == key and t > timestamp_ms]
            assert until == min(later, default=VALID_TO_UNDEFINED)
        check_versions(life.store, model, asked)
        model.end(life, outcome)
        check_versions(life.store, model, asked)
        check_versions(life.rebuilt(), model, asked)


def check_versions(store: VersionedStore[Any], model: Model, asked: list[int]) -> None:
    for key in (b"a", b"a\0", b""):
        times = sorted(t for k, t in model.now if k == key)
        latest = model.now[key, times[-1]] if times else None
        expected = None if latest is None else VersionedRecord(latest, times[-1], None)
        assert store.get(key) == expected
        for as_of in asked:
            before = [t for t in times if t <= as_of]
            after = [t for t in times if t > as_of]
            valid = before and (as_of >= model.stream_time - RETENTION_MS or not after)
            value = model.now[key, before[-1]] if valid else None
            until = after[0] if after else None
            expected = None if value is None else VersionedRecord(value, before[-1], until)
            assert store.get(key, as_of) == expected
