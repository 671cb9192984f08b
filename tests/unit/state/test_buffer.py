"""Test that buffers evict records in order of time, and that a rollback leaves no trace."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from state.buffer import BufferStore
from state.buffered_change import (
    BufferedChange,
    RecordOrigin,
    change_size_bytes,
    decode_change,
    encode_change,
)
from state.keys import TIME_MAX
from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint

HERE = RecordOrigin(5, 7, 0, "in", (("h", b"h5"), ("none", None)))


def at(timestamp_ms: int) -> RecordOrigin:
    return RecordOrigin(timestamp_ms, 0, 0, "in", ())


def order(buffer: BufferStore) -> list[bytes]:
    """Evict all records of the buffer, and return their keys in order."""
    keys = []
    while buffer.record_count:
        keys.append(buffer.peek_first()[0])
        buffer.evict_first()
    return keys


def test_what_waits_leaves_by_its_time_and_then_by_the_bytes_of_its_key() -> None:
    buffer = BufferStore("b", MemoryDisk())
    for key, time_ms in ((b"c", 5), (b"b", 9), (b"a", 9), (b"\xff", 0)):
        buffer.put(key, time_ms, None, b"v", at(time_ms))
    assert buffer.min_time_ms == 0
    assert order(buffer) == [b"\xff", b"c", b"a", b"b"]
    assert buffer.min_time_ms > TIME_MAX


def test_a_key_that_waits_keeps_its_place_and_its_prior_value() -> None:
    buffer = BufferStore("b", MemoryDisk())
    buffer.put(b"a", 1, b"0", b"1", at(1))
    buffer.put(b"b", 2, None, b"1", at(2))
    buffer.put(b"a", 9, b"1", b"2", at(9))
    assert buffer.peek_first() == (b"a", BufferedChange(b"0", b"1", b"2", at(9)))
    assert buffer.record_count == 2


@pytest.mark.parametrize(
    ("prior", "old", "size_bytes"),
    [(None, None, 0), (b"123", b"12", 5), (b"123", b"123", 3), (None, b"12", 2), (b"1", None, 1)],
)
def test_sizes_are_those_that_kafka_streams_reckons(
    prior: bytes | None, old: bytes | None, size_bytes: int
) -> None:
    change = BufferedChange(prior, old, b"new", HERE)
    assert change_size_bytes(change) == 20 + len("in") + len("h" + "h5" + "none") + size_bytes + 3
    assert change_size_bytes(BufferedChange(prior, old, None, at(0))) == 22 + size_bytes
    buffer = BufferStore("b", MemoryDisk())
    buffer.put(b"key", 0, None, b"new", HERE)
    assert buffer.size_bytes == 8 + 3 + change_size_bytes(BufferedChange(None, None, b"new", HERE))
    buffer.put(b"key", 0, None, b"newer", HERE)
    assert buffer.size_bytes == 8 + 3 + change_size_bytes(
        BufferedChange(None, None, b"newer", HERE)
    )
    buffer.evict_first()
    assert buffer.size_bytes == 0
    buffer.rollback_transaction()
    buffer.put(b"k", 0, None, b"new", HERE)
    assert buffer.size_bytes == 8 + 1 + change_size_bytes(BufferedChange(None, None, b"new", HERE))


def test_uncommitted_memory_is_that_of_the_keys_that_the_transaction_touched() -> None:
    buffer = BufferStore("b", MemoryDisk())
    assert buffer.uncommitted_bytes == 0
    sizes = []
    for number in range(40):
        buffer.put(b"key-%02d" % number, number, None, bytes(1000), at(number))
        sizes.append(buffer.uncommitted_bytes)
    assert all(1000 * n < size < 2000 * n for n, size in enumerate(sizes, 1))
    buffer.put(b"key-07", 7, None, bytes(1000), at(7))
    assert buffer.uncommitted_bytes == sizes[-1]  # the change that it replaced is gone
    buffer.drain_writes()
    buffer.commit(StoreCheckpoint(40, "t"))
    assert buffer.uncommitted_bytes == 0
    buffer.evict_first()
    assert 0 < buffer.uncommitted_bytes < 1000


@pytest.mark.parametrize("old", [None, b"", b"prior", b"other"])
@pytest.mark.parametrize("new", [None, b"", b"new"])
def test_a_change_is_read_as_it_was_written(old: bytes | None, new: bytes | None) -> None:
    change = BufferedChange(b"prior", old, new, HERE)
    data = encode_change(change)
    assert decode_change(data + b"12345678") == (change, len(data))
    for cut in range(len(data)):
        with pytest.raises(ValueError, match="are no buffered change"):
            decode_change(data[:cut])


GOLDEN = [
    ("61", ("0000000000000007000000000000000300000002696e00000000000000010000000168000000026837"
     "ffffffff0000000132ffffffff0000000000000000")),
    ("62", ("0000000000000014000000000000000700000002696e00000000000000010000000168000000036832"
     "300000000131fffffffeffffffff0000000000000014")),
]  # fmt: skip
"""Changelog records of a suppressed table, from Kafka Streams 4.3.0 in its own driver."""


def test_the_changelog_has_kafka_streams_bytes() -> None:
    def origin(timestamp_ms: int, offset: int) -> RecordOrigin:
        return RecordOrigin(timestamp_ms, offset, 0, "in", (("h", f"h{timestamp_ms}".encode()),))

    buffer = BufferStore("b", MemoryDisk())
    buffer.put(b"a", 0, None, b"1", origin(0, 0))
    buffer.put(b"a", 5, b"1", b"2", origin(5, 1))
    buffer.put(b"a", 7, b"2", None, origin(7, 3))
    buffer.put(b"b", 20, b"1", None, origin(20, 7))
    assert [(k.hex(), (v or b"").hex(), t) for k, v, t in buffer.drain_writes()] == [
        (key, value, 20) for key, value in GOLDEN
    ]
    restored = BufferStore("b", MemoryDisk())
    entries = [(bytes.fromhex(key), bytes.fromhex(value), 20) for key, value in GOLDEN]
    restored.replay_changelog(entries, StoreCheckpoint(2, "t"))
    assert restored.peek_first() == (b"a", BufferedChange(None, b"2", None, origin(7, 3)))
    assert order(restored) == [b"a", b"b"]


def test_where_keys_have_their_time_in_them_it_is_not_written_again() -> None:
    def time_of(key: bytes) -> int:
        return int(key[:2])

    buffer = BufferStore("b", MemoryDisk(), time_of=time_of)
    buffer.put(b"09b", 9, None, b"v", at(9))
    ((key, value, _),) = buffer.drain_writes()
    assert value is not None
    assert value.endswith(bytes(8))
    again = BufferStore("b", MemoryDisk(), time_of=time_of)
    again.replay_changelog([(key, value, 9)], StoreCheckpoint(1, "t"))
    assert again.min_time_ms == 9


def test_nothing_is_written_between_drain_and_the_outcome() -> None:
    buffer = BufferStore("b", MemoryDisk())
    buffer.put(b"a", 0, None, b"v", HERE)
    assert buffer.uncommitted_bytes > 0
    buffer.drain_writes()
    with pytest.raises(RuntimeError, match="after drain"):
        buffer.put(b"b", 0, None, b"v", HERE)
    with pytest.raises(RuntimeError, match="after drain"):
        buffer.evict_first()
    buffer.rollback_transaction()
    with pytest.raises(RuntimeError, match="before drain"):
        buffer.commit(StoreCheckpoint(0, "t"))


class Model:
    """Represents the buffered records and the committed ones as plain dicts."""

    def __init__(self) -> None:
        self.now: dict[bytes, tuple[int, bytes, bytes | None]] = {}
        self.committed = dict(self.now)

    def put(self, key: bytes, time_ms: int, value: bytes) -> None:
        place, _, prior = self.now.get(key, (time_ms, b"", value + b" before"))
        self.now[key] = place, value, prior

    def remove_first(self) -> None:
        del self.now[min(self.now, key=lambda key: (self.now[key][0], key))]


def count_bytes(buffer: BufferStore) -> int:
    """Count the size of all buffered changes, each with its key and its time."""
    changes = {key: buffer.find_change(key) for key in buffer.buffered_keys()}
    return sum(
        8 + len(key) + change_size_bytes(change) for key, change in changes.items() if change
    )


def seen(buffer: BufferStore) -> dict[bytes, tuple[int, bytes, bytes | None]]:
    """Return the buffered changes and their times, by evicting all and rolling that back."""
    found = {}
    while buffer.record_count:
        time_ms, (key, change) = buffer.min_time_ms, buffer.peek_first()
        assert buffer.find_change(key) == change
        found[key] = time_ms, change.new or b"", change.prior
        buffer.evict_first()
    assert buffer.size_bytes == 0
    buffer.rollback_transaction()
    return found


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("seed", range(6))
def test_through_commits_rollbacks_and_crashes_it_is_what_a_plain_dict_is(
    seed: int, kind: str, tmp_path: Path
) -> None:
    random, model = Random(seed), Model()
    disk: StoreDisk = (
        MemoryDisk() if kind == "memory" else RocksDisk(tmp_path / "b", store_name="b")
    )
    buffer, changelog = BufferStore("b", disk), list[ChangelogEntry]()

    def commit(*, stored: bool) -> None:
        nonlocal buffer
        changelog.extend(buffer.drain_writes())
        if stored:
            buffer.commit(StoreCheckpoint(len(changelog), "t"))
        else:  # The process ends between Kafka's commit and the disk's.
            buffer = BufferStore("b", disk)
            checkpoint = buffer.read_checkpoint()
            position = 0 if checkpoint is None else checkpoint.position
            buffer.replay_changelog(changelog[position:], StoreCheckpoint(len(changelog), "t"))
            buffer.finish_restore()
        model.committed = dict(model.now)

    def rollback() -> None:
        buffer.rollback_transaction()
        model.now = dict(model.committed)

    for step in range(150):
        match random.choices(("put", "leave", "commit", "rollback", "crash"), (9, 5, 2, 1, 1))[0]:
            case "put":
                key, time_ms = bytes([random.randrange(9)]), random.randrange(20)
                value = str(step).encode()
                model.put(key, time_ms, value)
                buffer.put(key, time_ms, value + b" before", value, at(time_ms))
            case "leave" if model.now:
                model.remove_first()
                buffer.evict_first()
            case "commit":
                commit(stored=True)
            case "rollback":
                rollback()
            case "crash":
                commit(stored=False)
        assert buffer.record_count == len(model.now), f"{seed=} {step=}"
        assert buffer.size_bytes == count_bytes(buffer), f"{seed=} {step=}"
    commit(stored=True)
    restored = BufferStore("b", MemoryDisk())
    restored.replay_changelog(changelog, StoreCheckpoint(len(changelog), "t"))
    assert seen(restored) == seen(buffer) == model.now, f"{seed=}"
    buffer.clear_all_data()
    assert (buffer.record_count, buffer.read_checkpoint()) == (0, None)
    buffer.close()
