"""Run one application: feed its input, read what has come out of it, and judge it at the end."""

from __future__ import annotations

import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.tasks.store_opening import open_store
from streams.topology.build import Topology
from tests.crashes.operators.given import (
    BATCH,
    CLOSING,
    GRACE_MS,
    JSON,
    SEEN,
    Application,
    Sent,
    Truth,
)
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import Reader, final_records, records

PARTITIONS = 2
WORKERS = 2

Entry = tuple[bytes, bytes | None, int]
"""Key, value and timestamp of a record."""
_CLOSERS = 12
"""So many keys are in every partition, of repartition topics too."""
_CLOSE_EVERY_S = 0.5


class Course:
    """Represents one application's run; its input topics are named `<application>-<end>`."""

    def __init__(self, servers: str, name: str, state: Path, application: Application) -> None:
        self.servers, self.application, self.state = servers, name, state
        self.source, self.target = f"{name}-in", f"{name}-out"
        self.output: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        """Every committed result that was seen so far, by operator and key, in order."""
        self._app = application
        self._sent: list[Sent] = []
        self._batches = 0
        self._begin_ms = int(time.time()) * 1_000
        self._now_ms = 0
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [*(f"{name}-{end}" for end in application.TOPICS), self.target]
        for answer in admin.create_topics([NewTopic(t, PARTITIONS, 1) for t in topics]).values():
            answer.result(HANG_LIMIT_S)
        self._reader = Reader(servers, self.target, PARTITIONS)
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "partitioner": "murmur2_random",
            }
        )
        self._send(application.first(self._begin_ms))

    def close(self) -> None:
        self._reader.close()

    def load(self) -> None:
        """Load some more records."""
        self._send(self._app.batch(self._batches * BATCH, self._begin_ms))
        self._batches += 1

    def wait(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait until all that was loaded has passed, or `unless` comes true."""
        due = sum(each.topic in self._app.PROGRESS for each in self._sent)

        def passed() -> bool:
            self._read()
            return sum(map(len, self.output[SEEN].values())) >= due

        wait_until(
            lambda: unless() or passed(),
            what=lambda: (
                f"{sum(map(len, self.output[SEEN].values()))} of {due} records have passed"
            ),
        )

    def end(self) -> None:
        """Move time on until everything has closed and all results are there."""
        truth = self._app.truth(self._sent)
        began = closed = time.monotonic() - _CLOSE_EVERY_S
        while wrong := self._missing(truth):
            assert time.monotonic() < began + HANG_LIMIT_S, wrong
            if time.monotonic() > closed + _CLOSE_EVERY_S:
                closed = time.monotonic()
                self._move_time_on()
            self._read()

    def read_to_the_end(self) -> None:
        """Read the output once more from its beginning to its end.

        No worker may run, so that nothing comes behind what `check` looks at.
        """
        self.output.clear()
        for message in final_records(self.servers, self.target, PARTITIONS):
            self._take(message)

    def check(self) -> None:
        """Check that what has come out is the truth, each result once. Raises AssertionError."""
        truth = self._app.truth(self._sent)
        for operator, all_of_it in {**truth.once, **truth.in_any_order, **truth.last}.items():
            assert all_of_it, f"{operator}: nothing is expected of it"
        for operator, expected in truth.once.items():
            assert_equal(operator, self._found(operator), {k: [v] for k, v in expected.items()})
        for operator, in_any_order in truth.in_any_order.items():
            found = {k: sorted(v, key=repr) for k, v in self._found(operator).items()}
            assert_equal(operator, found, in_any_order)
        assert not self._missing(truth)

    def exactly_once(self) -> list[str]:
        """Return the operators whose results must come exactly once."""
        truth = self._app.truth(self._sent)
        return [*truth.once, *truth.in_any_order]

    def any_result(self, operator: str) -> list[Any]:
        """Return all that came out of an operator for some key."""
        return next(values for values in self._found(operator).values() if values)

    def check_stores(self) -> None:
        """Check that each store's disk holds what its changelog gives when replayed.

        No worker may run.
        """
        logs = self._changelogs
        for spec in self._specs:
            for path in self._paths(f"*_*/{spec.name}"):
                task = path.parent.name
                log = logs[spec.name][int(task.partition("_")[2])]
                assert log, f"the changelog of {spec.name} in {task} is empty"
                on_disk = _contents(spec, RocksDisk(path))
                replayed = _contents(spec, MemoryDisk(), log)
                assert_equal(f"disk of {spec.name} in {task}", on_disk, replayed)
        for table in self._topology.global_tables:
            for path in self._paths(f"process-*/global/{table.store.name}"):
                self._check_copy(table.topic, path)

    def lose_a_key(self) -> str:
        """Delete a key of a store on disk, and return the store's name."""
        for spec in self._specs:
            for path in self._paths(f"*_*/{spec.name}"):
                disk = RocksDisk(path)
                key, checkpoint = next(disk.range(None, None), None), disk.read_checkpoint()
                if key is not None and checkpoint is not None:
                    disk.write_changes({key[0]: None}, checkpoint)
                disk.close()
                if key is not None:
                    return spec.name
        raise AssertionError("all stores are empty")

    @cached_property
    def _topology(self) -> Topology:
        return self._app.build(self.application, self.source, self.target).topology()

    @property
    def _specs(self) -> list[StoreSpec]:
        return [spec for sub in self._topology.subtopologies for spec in sub.stores]

    def _paths(self, pattern: str) -> list[Path]:
        paths = sorted((self.state / self.application).glob(pattern))
        assert len(paths) == PARTITIONS, f"{pattern}: {paths}"  # there are as many workers
        return paths

    @cached_property
    def _changelogs(self) -> dict[str, list[list[Entry]]]:
        """Return the entries of each store's changelog by partition. No worker may run."""
        found: dict[str, list[list[Entry]]] = {}
        for spec in self._specs:
            log: list[list[Entry]] = [[] for _ in range(PARTITIONS)]
            for m in records(self.servers, self._topology.restore_topic_of(spec.name), PARTITIONS):
                log[m.partition()].append((m.key(), m.value(), m.timestamp()[1]))
            found[spec.name] = log
        return found

    def _check_copy(self, topic: str, path: Path) -> None:
        """Check that a worker's copy of a global table is its topic up to the copy's position."""
        disk = RocksDisk(path)
        checkpoint = disk.read_checkpoint()
        found = {key: stored[8:] for key, stored in disk.range(None, None)}
        disk.close()
        assert checkpoint is not None
        wanted: dict[bytes, bytes] = {}
        for message in records(self.servers, topic, PARTITIONS):
            if message.offset() >= checkpoint.positions[message.partition()]:
                continue
            if message.value() is None:
                wanted.pop(message.key(), None)
            else:
                wanted[message.key()] = message.value()
        assert_equal(f"{path}", found, wanted)

    def _missing(self, truth: Truth) -> str:
        """Describe the operators whose results are incomplete, and what of them is missing."""
        wrong: list[str] = []
        for operator, expected in truth.once.items():
            if left := expected.keys() - self._found(operator).keys():
                wrong.append(f"{operator}: nothing of {sorted(left)[:3]} ({len(left)})")
        for operator, in_any_order in truth.in_any_order.items():
            found = sum(map(len, self._found(operator).values()))
            wanted = sum(map(len, in_any_order.values()))
            if found < wanted:
                wrong.append(f"{operator}: {found} of {wanted}")
        for operator, last in truth.last.items():
            now = {key: values[-1] for key, values in self._found(operator).items()}
            if (there := {k: v for k, v in now.items() if v is not None}) != last:
                wrong.append(f"{operator}: {differences(there, last)}")
        return "\n".join(wrong)

    def _found(self, operator: str) -> dict[str, list[Any]]:
        found = self.output[operator]
        return {key: values for key, values in found.items() if CLOSING not in key}

    def _read(self) -> None:
        for message in self._reader.take():
            self._take(message)

    def _take(self, message: Any) -> None:
        operator, _, key = message.key().decode().partition(" ")
        value = message.value()
        self.output[operator][key].append(None if value is None else orjson.loads(value))

    def _move_time_on(self) -> None:
        """Move stream time far on, with records that are in no truth."""
        self._now_ms += 3 * GRACE_MS
        for topic in self._app.PROGRESS:
            for number in range(_CLOSERS):
                self._write(Sent(topic, f"{CLOSING}-{number}", number, self._now_ms))
        assert self._producer.flush(HANG_LIMIT_S) == 0

    def _send(self, sent: Iterable[Sent]) -> None:
        for each in sent:
            self._sent.append(each)
            self._now_ms = max(self._now_ms, each.timestamp_ms)
            self._write(each)
        assert self._producer.flush(HANG_LIMIT_S) == 0

    def _write(self, each: Sent) -> None:
        value = None if each.value is None else JSON["value"].serialize(each.value)
        self._producer.produce(
            f"{self.application}-{each.topic}",
            value,
            each.key,
            -1 if each.topic in self._app.HASHED else zlib.crc32(each.key.encode()) % PARTITIONS,
            timestamp=each.timestamp_ms,
        )


def _contents(spec: StoreSpec, disk: Any, log: Iterable[Any] = ()) -> dict[Any, Any]:
    """Return what a store holds, as its readers find it or, if it has none, as it lies on disk."""
    store = open_store(spec, disk)
    try:
        if log:
            store.replay_changelog(log, StoreCheckpoint(0, ""))
        if spec.kind in (StoreKind.BUFFER, StoreKind.VERSIONED) or spec.ttl_ms is not None:
            return dict(disk.range(None, None))
        found: dict[Any, list[Any]] = defaultdict(list)
        for key, value in store.all():  # type: ignore[union-attr]
            found[key].append(value)  # one of several, where a store retains duplicates
        return dict(found)
    finally:
        store.close()


def assert_equal(what: str, found: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> None:
    assert found == wanted, f"{what}: {differences(found, wanted)}"


def differences(found: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> str:
    """Describe some keys with what was found and what should have been."""
    keys = [k for k in {**found, **wanted} if found.get(k) != wanted.get(k)]
    shown = {k: (found.get(k), wanted.get(k)) for k in keys[:3]}
    return f"{len(keys)} keys differ, found and wanted: {shown}"
