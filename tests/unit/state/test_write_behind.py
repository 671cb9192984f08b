"""Test changes that wait above a disk: seen as if they were on it, and written in time."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state.errors import StateError
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from state.write_behind import WAITING_BYTES_MAX, WAITING_S_MAX, WriteBehindDisk

Changes = dict[bytes, bytes | None]
Bounds = tuple[bytes | None, bytes | None]
KEYS = st.sampled_from((b"a", b"b", b"ba", b"c", b"d"))
CHANGES = st.dictionaries(KEYS, st.none() | st.binary(max_size=3), max_size=6)
STEPS = st.one_of(
    st.tuples(st.just("write"), CHANGES),
    st.tuples(st.just("load"), CHANGES),
    st.tuples(st.just("delete"), st.tuples(KEYS, KEYS)),
    st.tuples(st.just("wait"), st.sampled_from((0.3, WAITING_S_MAX))),
    st.tuples(st.just("tick"), st.none()),
    st.tuples(st.just("clear"), st.none()),
)


class Clock:
    """Stands in for the machine's monotonic clock."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s


class FullDisk(MemoryDisk):
    """Refuses every write, as a disk does that is full."""

    is_closed = False

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        raise StateError("store 'counts' can't be written: No space left on device")

    def close(self) -> None:
        self.is_closed = True


class TornDisk(MemoryDisk):
    """Counts the keys that are written, and writes one of them before it fails once."""

    fails = False
    written = 0

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        if self.fails:
            self.fails = False
            super().write_changes(dict([*changes.items()][:1]), StoreCheckpoint(0, "topic"))
            raise StateError("store 'counts' can't be written: No space left on device")
        self.written += len(changes)
        super().write_changes(changes, checkpoint)


class LockedDisk(MemoryDisk):
    """Checks that a range begins while no waiting change can be written or dropped."""

    above: WriteBehindDisk

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        assert self.above._changing.locked()
        yield from super().range(first, end, reverse=reverse)


class Waiting:
    """Holds a disk whose changes wait, what is below it, and its clock."""

    def __init__(self, below: MemoryDisk | None = None) -> None:
        self.clock = Clock()
        self.below = below or MemoryDisk()
        self.disk = WriteBehindDisk(self.below, monotonic_s=self.clock.monotonic_s)

    def write(self, changes: Changes, position: int, new_keys: Collection[bytes] = ()) -> None:
        self.disk.write_changes(changes, StoreCheckpoint(position, "topic"), new_keys)

    def write_after_a_second(self) -> None:
        self.clock.now_s += WAITING_S_MAX
        self.disk.write_if_due()


def contents(disk: MemoryDisk | WriteBehindDisk) -> dict[bytes, bytes]:
    return dict(disk.range(None, None))


@settings(max_examples=300)
@given(st.lists(STEPS, min_size=1, max_size=25), KEYS, KEYS)
def test_it_reads_like_a_disk_that_is_written_at_once(
    steps: list[tuple[str, object]], first: bytes, end: bytes
) -> None:
    """After each step; and what is below is always what it was at the checkpoint that is there."""
    waiting, model = Waiting(), MemoryDisk()
    disk = waiting.disk
    at_position: dict[int, dict[bytes, bytes]] = {0: {}}
    for position, (step, given_) in enumerate(steps, 1):
        checkpoint = StoreCheckpoint(position, "topic")
        match step, given_:
            case "write", dict():
                new_keys = [key for key in given_ if model.get(key) is None]
                disk.write_changes(given_, checkpoint, new_keys)
                model.write_changes(given_, checkpoint)
            case "load", dict():
                disk.load_changes(given_.items(), checkpoint)
                model.load_changes(given_.items(), checkpoint)
            case "delete", (bytes() as from_, bytes() as to):
                disk.delete_range(from_, to)
                model.delete_range(from_, to)
            case "wait", float() as seconds:
                waiting.clock.now_s += seconds
            case "tick", _:
                disk.write_if_due()
            case _:
                disk.clear_all_data()
                model.clear_all_data()
        now = model.read_checkpoint()
        at_position[0 if now is None else now.position] = contents(model)
        assert disk.read_checkpoint() == now
        for reverse in (False, True):
            bounds: list[Bounds] = [(None, None), (first, end), (None, end), (first, None)]
            for low, high in bounds:
                found = list(disk.range(low, high, reverse=reverse))
                assert found == list(model.range(low, high, reverse=reverse))
        assert [disk.get(key) for key in (first, end)] == [model.get(key) for key in (first, end)]
        below = waiting.below.read_checkpoint()
        if step != "delete":  # which moves no checkpoint
            assert contents(waiting.below) == at_position[0 if below is None else below.position]
    disk.close()
    assert contents(waiting.below) == contents(model)


def test_changes_of_several_commits_are_written_once_after_a_second() -> None:
    waiting = Waiting()
    waiting.write({b"a": b"1"}, 1)
    waiting.clock.now_s = WAITING_S_MAX / 2
    waiting.write({b"a": b"2", b"b": b"1"}, 3)
    assert (contents(waiting.below), waiting.below.read_checkpoint()) == ({}, None)
    waiting.clock.now_s = WAITING_S_MAX
    waiting.write({b"b": None}, 4)
    assert contents(waiting.below) == {b"a": b"2"}
    assert waiting.below.read_checkpoint() == StoreCheckpoint(4, "topic")
    waiting.write({b"a": b"3"}, 5)
    assert contents(waiting.below) == {b"a": b"2"}, "the wait begins anew"


def test_where_no_commit_follows_it_is_written_when_asked() -> None:
    waiting = Waiting()
    waiting.write({b"a": b"1"}, 1)
    waiting.clock.now_s = WAITING_S_MAX / 2
    waiting.disk.write_if_due()
    assert contents(waiting.below) == {}
    waiting.clock.now_s = WAITING_S_MAX
    waiting.disk.write_if_due()
    assert contents(waiting.below) == {b"a": b"1"}


def test_what_is_new_and_deleted_again_before_it_is_written_never_is() -> None:
    below = TornDisk()
    waiting = Waiting(below)
    waiting.write({b"old": b"1"}, 1, [b"old"])
    waiting.write_after_a_second()
    for number in range(2, 6):  # a session that is extended by each commit
        waiting.write({b"%d" % (number - 1): None, b"%d" % number: b"v"}, number, [b"%d" % number])
    waiting.write({b"old": None, b"within one commit": None}, 6, [b"within one commit"])
    assert contents(waiting.disk) == {b"5": b"v"}
    below.written = 0
    waiting.write_after_a_second()
    assert (contents(below), below.written) == ({b"5": b"v"}, 3), "and two deletions"
    assert below.read_checkpoint() == StoreCheckpoint(6, "topic")


def test_what_is_on_disk_and_deleted_made_anew_and_deleted_again_goes_from_it() -> None:
    waiting = Waiting()
    waiting.write({b"a": b"1"}, 1, [b"a"])
    waiting.write_after_a_second()
    for position, value in enumerate((None, b"2", None), 2):
        waiting.write({b"a": value}, position, [b"a"] if value else [])
    waiting.write_after_a_second()
    assert contents(waiting.below) == {}


def test_a_write_that_failed_may_have_written_what_is_deleted_after_it() -> None:
    below = TornDisk()
    waiting = Waiting(below)
    waiting.write({b"a": b"1"}, 1, [b"a"])
    below.fails = True
    with pytest.raises(StateError):
        waiting.write_after_a_second()
    assert contents(below) == {b"a": b"1"}
    waiting.write({b"a": None}, 2)
    waiting.write_after_a_second()
    assert contents(below) == {}


def test_much_is_written_at_once() -> None:
    waiting = Waiting()
    half = WAITING_BYTES_MAX // 1_000 // 2
    waiting.write({b"%08d" % n: b"v" * 992 for n in range(half)}, half)
    assert contents(waiting.below) == {}
    waiting.write({b"%08d" % n: b"v" * 992 for n in range(half, 2 * half + 2)}, 2 * half + 2)
    assert len(contents(waiting.below)) == 2 * half + 2


def test_a_range_sees_no_commit_that_comes_after_its_first_step() -> None:
    waiting = Waiting()
    waiting.write({b"a": b"1", b"c": b"1"}, 2)
    found = waiting.disk.range(None, None)
    assert next(found) == (b"a", b"1")
    waiting.write({b"b": b"2", b"c": b"2"}, 4)
    waiting.clock.now_s = WAITING_S_MAX
    waiting.disk.write_if_due()
    assert list(found) == [(b"c", b"1")]


def test_a_range_begins_above_and_below_at_the_same_time() -> None:
    below = LockedDisk()
    below.above = WriteBehindDisk(below, monotonic_s=Clock().monotonic_s)
    below.load_changes({b"b": b"1"}.items(), StoreCheckpoint(1, "topic"))
    below.above.write_changes({b"a": b"1"}, StoreCheckpoint(2, "topic"))
    assert contents(below.above) == {b"a": b"1", b"b": b"1"}


def test_a_waiting_value_counts_as_new_and_a_deletion_as_one_less() -> None:
    waiting = Waiting()
    waiting.disk.load_changes({b"a": b"1", b"b": b"1"}.items(), StoreCheckpoint(2, "topic"))
    waiting.write({b"a": None, b"c": b"1", b"d": b"1"}, 5)
    assert waiting.disk.approximate_count() == 3
    waiting.write({b"x": None, b"y": None, b"z": None, b"c": None, b"d": None}, 10)
    assert waiting.disk.approximate_count() == 0


def test_a_full_disk_is_closed_and_told(caplog: pytest.LogCaptureFixture) -> None:
    disk = FullDisk()
    waiting = WriteBehindDisk(disk, monotonic_s=Clock().monotonic_s)
    waiting.write_changes({b"a": b"1"}, StoreCheckpoint(1, "topic"))
    with caplog.at_level(logging.INFO):
        waiting.close()
    assert disk.is_closed
    assert "No space left on device. Its last changes will be restored" in caplog.text
