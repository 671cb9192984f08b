"""What the operations of stores cost on RocksDB, without a broker: processor time for each.

    python -m benchmarks.stores [--records 100000]

Transactions of 10 000 records, keys at random; times are of this process, so that what else the
machine does counts little. `few keys` are all in the cache, of `many keys` hardly any is.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.recorded import record
from state.cache import ObjectCache
from state.rocksdb import RocksDisk
from state.store import Checkpoint
from streams import serdes
from streams.runtime.stores import Store, open_store
from streams.topology.nodes import StoreKind, StoreSpec

_TRANSACTION = 10_000


class Measured:
    """Processor time by what was done."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._times: dict[str, int] = {}

    def run(self, what: str, action: Callable[[], object]) -> None:
        began = time.process_time()
        action()
        self._seconds[what] = self._seconds.get(what, 0.0) + time.process_time() - began
        self._times[what] = self._times.get(what, 0) + _TRANSACTION

    def report(self, title: str) -> None:
        print(title)
        for what, seconds in self._seconds.items():
            record("stores", f"{title}: {what}", "ours", "us", [1e6 * seconds / self._times[what]])
            print(f"  {what:40} {1e6 * seconds / self._times[what]:6.2f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as directory:
        for name, keys in (("few", 10_000), ("many", 1_000_000)):
            _count(Path(directory) / name, f"count, {keys} keys", keys, records)
        _windows(Path(directory) / "windows", records)
        _versions(Path(directory) / "versions", records)


def _opened(path: Path, kind: StoreKind, **settings: Any) -> Store:
    spec = StoreSpec(
        name="s", key=serdes.string, value=serdes.int64, kind=kind, caching=True, **settings
    )
    return open_store(spec, RocksDisk(path), cache=ObjectCache(10 << 20))


def _count(path: Path, title: str, keys: int, records: int) -> None:
    store: Any = _opened(path, StoreKind.KEY_VALUE)
    one = serdes.int64.serialize(1)
    for first in range(0, keys, 50_000):
        batch = range(first, min(first + 50_000, keys))
        store.replay([(f"key-{n}".encode(), one, 0) for n in batch], Checkpoint(first, "t"))
    store.caught_up()

    def update(names: list[str]) -> None:
        find = store.update
        for name in names:
            entry = find(name)
            entry.value = 1 if entry.value is None else entry.value + 1

    _transactions(store, title, keys, records, {"update": update})


def _windows(path: Path, records: int) -> None:
    store: Any = _opened(path, StoreKind.WINDOW, window_size_ms=1_000, retention_ms=3_600_000)

    def update(names: list[str]) -> None:
        for number, name in enumerate(names):
            entry = store.update(name, number // 100 * 1_000)
            entry.value, entry.timestamp_ms = (entry.value or 0) + 1, number

    _transactions(store, "windows", 1_000, records, {"update": update})


def _versions(path: Path, records: int) -> None:
    store: Any = _opened(path, StoreKind.VERSIONED, history_ms=10**9)
    clock = iter(range(10**9))

    def put(names: list[str]) -> None:
        for name in names:
            store.put(name, 1, next(clock))

    def latest(names: list[str]) -> None:
        for name in names:
            store.get(name)

    def as_of(names: list[str]) -> None:
        time_ms = store.stream_time_ms - _TRANSACTION
        for name in names:
            store.get(name, time_ms)

    actions = {"put": put, "get the latest": latest, "get as of an earlier time": as_of}
    _transactions(store, "versions", 1_000, records, actions)


def _transactions(
    store: Any,
    title: str,
    keys: int,
    records: int,
    actions: Mapping[str, Callable[[list[str]], None]],
) -> None:
    chance, measured = random.Random(1), Measured()
    for number in range(max(records // _TRANSACTION, 1)):
        names = [f"key-{chance.randrange(keys)}" for _ in range(_TRANSACTION)]
        for what, action in actions.items():
            measured.run(what, partial(action, names))
        measured.run("drain, a record", store.drain)
        checkpoint = Checkpoint((number + 1) * _TRANSACTION, "t")
        measured.run("commit, a record", partial(store.commit, checkpoint))
    store.close()
    measured.report(title)


if __name__ == "__main__":
    main()
