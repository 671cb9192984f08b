"""Measure the processor time of store operations on RocksDB, without a broker.

    python -m benchmarks.stores [--records 100000]

Transactions of 10 000 records, keys at random; times are of this process, so that other load of the
machine counts little. Of 10 000 keys all are in the cache, of 1 000 000 hardly any is, and of those
that come once none is in the store. `a join` looks the key of each record up in 100 ms, of 1 000
records, and stores it: with the newest entries in memory (`state.recent_windows`), and from the
disk alone, as a store without a changelog does.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.recorded import record
from state.cache import ObjectCache
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams import serdes
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.tasks.store_opening import AnyStore, open_store

_TRANSACTION = 10_000
_NEW_KEYS_MAX, _STRIDE = 100_000_000, 61_195_301
"""New keys come in no order of their bytes: multiples of a prime, modulo a number that it does not
divide."""


class OperationTimes:
    """Adds up the processor time of each operation."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._times: dict[str, int] = {}

    def run_timed(self, what: str, action: Callable[[], object]) -> None:
        """Run an action on a transaction's records, and add its processor time to `what`."""
        began = time.process_time()
        action()
        self._seconds[what] = self._seconds.get(what, 0.0) + time.process_time() - began
        self._times[what] = self._times.get(what, 0) + _TRANSACTION

    def print_report(self, title: str) -> None:
        """Print and record the microseconds that each operation takes for a record."""
        print(title)
        for what, seconds in self._seconds.items():
            record("stores", f"{title}: {what}", "ours", "us", [1e6 * seconds / self._times[what]])
            print(f"  {what:40} {1e6 * seconds / self._times[what]:6.2f} us")


def main() -> None:
    """Measure the operations of all kinds of stores, and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as directory:
        for name, keys in (("few", 10_000), ("many", 1_000_000), ("new", 0)):
            title = f"count, {keys} keys" if keys else "count, each key once"
            _measure_count(Path(directory) / name, title, keys, records)
        _measure_windows(Path(directory) / "windows", records)
        _measure_versions(Path(directory) / "versions", records)
        for name, logged in (("memory", True), ("disk", False)):
            _measure_join(Path(directory) / name, f"a join, from {name}", records, logged=logged)


def _open_store(path: Path, kind: StoreKind, **settings: Any) -> AnyStore:
    spec = StoreSpec(
        name="s", key=serdes.string, value=serdes.int64, kind=kind, caching=True, **settings
    )
    return open_store(spec, RocksDisk(path), cache=ObjectCache(10 << 20))


def _measure_count(path: Path, title: str, keys: int, records: int) -> None:
    """Measure the store operations of counting by key; 0 keys: each is new to the store."""
    store: Any = _open_store(path, StoreKind.KEY_VALUE)
    one = serdes.int64.serialize(1)
    for first in range(0, keys, 50_000):
        batch = range(first, min(first + 50_000, keys))
        store.replay_changelog(
            [(f"key-{n}".encode(), one, 0) for n in batch], StoreCheckpoint(first, "t")
        )
    store.finish_restore()

    def count_names(names: list[str]) -> None:
        find = store.get_entry_for_update
        for name in names:
            entry = find(name)
            entry.value = 1 if entry.value is None else entry.value + 1

    _run_transactions(store, title, keys, records, {"update": count_names})


def _measure_windows(path: Path, records: int) -> None:
    """Measure the store operations of counting in windows."""
    store: Any = _open_store(path, StoreKind.WINDOW, window_size_ms=1_000, retention_ms=3_600_000)

    def count_in_windows(names: list[str]) -> None:
        for number, name in enumerate(names):
            entry = store.get_entry_for_update(name, number // 100 * 1_000)
            entry.value, entry.timestamp_ms = (entry.value or 0) + 1, number

    _run_transactions(store, "windows", 1_000, records, {"update": count_in_windows})


def _measure_versions(path: Path, records: int) -> None:
    """Measure writes and reads of a versioned store."""
    store: Any = _open_store(path, StoreKind.VERSIONED, history_ms=10**9)
    clock = iter(range(10**9))

    def put_versions(names: list[str]) -> None:
        for name in names:
            store.put(name, 1, next(clock))

    def get_latest(names: list[str]) -> None:
        for name in names:
            store.get(name)

    def get_as_of(names: list[str]) -> None:
        time_ms = store.stream_time_ms - _TRANSACTION
        for name in names:
            store.get(name, time_ms)

    actions = {
        "put": put_versions,
        "get the latest": get_latest,
        "get as of an earlier time": get_as_of,
    }
    _run_transactions(store, "versions", 1_000, records, actions)


def _measure_join(path: Path, title: str, records: int, *, logged: bool) -> None:
    """Measure the store operations of a join of streams within 50 ms."""
    settings = {"window_size_ms": 100, "retention_ms": 1_100, "retain_duplicates": True}
    store: Any = _open_store(path, StoreKind.WINDOW, logged=logged, **settings)
    times = iter(range(10**9))

    def find_and_put(names: list[str]) -> None:
        for name in names:
            time_ms = next(times) // 10
            store.find_values(name, max(time_ms - 50, 0), time_ms + 50)
            store.put(name, 1, time_ms, time_ms)

    _run_transactions(store, title, 10_000, records, {"find and put": find_and_put})


def _run_transactions(
    store: Any,
    title: str,
    keys: int,
    records: int,
    actions: Mapping[str, Callable[[list[str]], None]],
) -> None:
    """Run the actions on random keys in transactions, with a commit each, and print the times.

    0 keys: no key comes twice.
    """
    chance, measured, new = random.Random(1), OperationTimes(), count()
    for number in range(max(records // _TRANSACTION, 1)):
        names = [
            f"key-{chance.randrange(keys) if keys else next(new) * _STRIDE % _NEW_KEYS_MAX}"
            for _ in range(_TRANSACTION)
        ]
        for what, action in actions.items():
            measured.run_timed(what, partial(action, names))
        measured.run_timed("drain, a record", store.drain_writes)
        checkpoint = StoreCheckpoint((number + 1) * _TRANSACTION, "t")
        measured.run_timed("commit, a record", partial(store.commit, checkpoint))
    store.close()
    measured.print_report(title)


if __name__ == "__main__":
    main()
