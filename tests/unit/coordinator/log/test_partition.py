from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.errors import Code, Refused
from coordinator.log.batch import iterate_batches
from coordinator.log.file_records import FileRecords
from coordinator.log.partition import PartitionLog
from tests.own_batches import encode_batch
from tests.unit.coordinator.log.logs import NOW_MS, FullDisk, StillClock, partition, produced


def offsets(data: bytes | FileRecords) -> list[int]:
    return [batch.base_offset for batch in iterate_batches(bytes(data))]


def write(log: PartitionLog, count: int) -> None:
    for i in range(count):
        log.append_produced(produced([b"value"], timestamp_ms=NOW_MS + i - 1_000))


def in_transaction(log: PartitionLog, producer_id: int, sequence: int = 0) -> int:
    batch = produced(producer_id=producer_id, sequence=sequence, transactional=True)
    return log.append_produced(batch).base_offset


def test_offsets_are_consecutive_whatever_the_client_wrote(tmp_path: Path) -> None:
    log = partition(tmp_path)
    assert log.append_produced(produced([b"a", b"b", b"c"])).base_offset == 0
    assert log.append_produced(produced([b"d"])).base_offset == 3
    assert (log.start_offset, log.end_offset, log.last_stable_offset) == (0, 4, 4)
    found = [
        (r.offset, r.value)
        for b in iterate_batches(log.read(0, 1 << 20))
        for r in b.iterate_records()
    ]
    assert found == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]


def test_nothing_is_made_on_disk_before_the_first_append(tmp_path: Path) -> None:
    log = partition(tmp_path)
    assert not log.directory.exists()
    write(log, 1)
    assert {path.name for path in log.directory.iterdir()} == {
        "00000000000000000000.log",
        "partition.metadata",
    }


def test_a_retry_appends_nothing_and_is_told_the_first_offset(tmp_path: Path) -> None:
    log = partition(tmp_path)
    write(log, 3)
    batch = produced(producer_id=7)
    assert log.append_produced(batch).base_offset == 3
    write(log, 2)
    assert log.append_produced(batch).base_offset == 3
    assert log.end_offset == 6


@pytest.mark.parametrize("segment_bytes", [100, 1_000, 1 << 30])
@pytest.mark.parametrize("index_interval_bytes", [0, 200, 4_096])
def test_every_offset_is_found_in_whole_batches(
    tmp_path: Path, segment_bytes: int, index_interval_bytes: int
) -> None:
    log = partition(
        tmp_path, segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes
    )
    for i in range(60):
        log.append_produced(produced([b"v"] * (1 + i % 3)))
    for offset in range(log.end_offset):
        for max_bytes in (0, 100, 250, 1 << 20):
            found = list(iterate_batches(log.read(offset, max_bytes)))
            assert found[0].base_offset <= offset <= found[0].last_offset
            assert sum(b.size for b in found) <= max(max_bytes, found[0].size)
    assert log.read(log.end_offset, 100) == b""


def test_limits_are_used_up_to_the_last_whole_batch(tmp_path: Path) -> None:
    log = partition(tmp_path, index_interval_bytes=200)
    write(log, 50)
    size = next(iterate_batches(log.read(0, 0))).size
    for count in range(1, 50):
        assert offsets(log.read(0, size * count)) == list(range(count))
        assert offsets(log.read(0, size * count + size - 1)) == list(range(count))


def test_the_first_batch_is_given_whole_only_if_asked_for(tmp_path: Path) -> None:
    log = partition(tmp_path)
    write(log, 2)
    assert offsets(log.fetch_batches(0, 1, committed=False, at_least_one=True).records) == [0]
    assert offsets(log.fetch_batches(0, 1, committed=False, at_least_one=False).records) == []


def test_offsets_outside_the_log_are_refused(tmp_path: Path) -> None:
    log = partition(tmp_path)
    write(log, 2)
    assert offsets(log.fetch_batches(2, 100, committed=False, at_least_one=True).records) == []
    for offset in (-1, 3):
        with pytest.raises(Refused) as refused:
            log.fetch_batches(offset, 100, committed=False, at_least_one=True)
        assert refused.value.code == Code.OFFSET_OUT_OF_RANGE


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    size = produced(producer_id=7).size
    disk = FullDisk(bytes_left=1 << 20)
    log = partition(tmp_path, disk=disk)
    in_transaction(log, 7)
    for attempt in (
        lambda: log.append_produced(produced(producer_id=7, sequence=1, transactional=True)),
        lambda: log.append_internal(encode_batch([(b"k", b"v")], timestamp_ms=1)),
        lambda: log.append_marker(7, 0, False, 0),
    ):
        disk.bytes_left = size // 2
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.code == Code.KAFKA_STORAGE_ERROR
        assert (log.end_offset, log.last_stable_offset) == (1, 0)
    disk.bytes_left = 1 << 20
    assert in_transaction(log, 7, sequence=1) == 1
    assert offsets(log.read(0, 1 << 20)) == [0, 1]


def test_failed_writes_are_logged_but_not_each_of_many(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk(bytes_left=10)
    clock = StillClock()
    log = partition(tmp_path, disk=disk, clock=clock)
    for _ in range(20):
        with pytest.raises(Refused):
            log.append_produced(produced())
        clock.time_ms += 1_000
    assert [each.getMessage().split(":")[0] for each in caplog.records] == [str(log.directory)] * 2


# What a read_committed consumer sees. Steps: `a` and `b` write in a transaction, `n` without one;
# capital letters end a transaction, `A` and `B` by abort, `X` and `Y` by commit of a and of b.
@pytest.mark.parametrize(
    ("steps", "last_stable_offset", "aborted"),
    [
        ("nnn", 3, []),
        ("a", 0, []),
        ("nan", 1, []),
        ("aX", 2, []),
        ("aA", 2, [("a", 0, 1, 2)]),
        ("A", 1, []),
        ("abA", 1, [("a", 0, 2, 1)]),
        ("abB", 0, [("b", 1, 2, 0)]),
        ("abBA", 4, [("b", 1, 2, 0), ("a", 0, 3, 4)]),
        ("abYA", 4, [("a", 0, 3, 4)]),
        ("aAaAa", 4, [("a", 0, 1, 2), ("a", 2, 3, 4)]),
        ("aAA", 3, [("a", 0, 1, 2)]),
    ],
)
def test_last_stable_offset_and_aborted_transactions_in_completion_order(
    tmp_path: Path, steps: str, last_stable_offset: int, aborted: list[tuple[str, int, int, int]]
) -> None:
    log = partition(tmp_path)
    run(log, steps)
    expected = [({"a": 1, "b": 2}[name], *rest) for name, *rest in aborted]
    for found in (log, partition(tmp_path)):  # live, and read again from the disk
        assert found.last_stable_offset == last_stable_offset
        assert found.end_offset == len(steps)
        assert found.find_aborted_transactions(0, 1_000) == expected


def run(log: PartitionLog, steps: str) -> None:
    sequences = {"a": 0, "b": 0}
    for step in steps:
        if step == "n":
            log.append_produced(produced())
        elif step in sequences:
            in_transaction(log, {"a": 1, "b": 2}[step], sequences[step])
            sequences[step] += 1
        else:
            producer_id = {"A": 1, "X": 1, "B": 2, "Y": 2}[step]
            log.append_marker(producer_id, 0, step in "XY", 0)


@pytest.mark.parametrize(
    ("offset", "max_bytes", "expected"),
    [
        (0, 1 << 20, [("b", 1), ("a", 0)]),
        (3, 1 << 20, [("a", 0)]),
        (4, 1 << 20, [("a", 0)]),
        (5, 1 << 20, []),
        (0, 1, [("a", 0)]),
    ],
)
def test_a_fetch_gets_the_aborted_transactions_that_touch_what_it_returns(
    tmp_path: Path, offset: int, max_bytes: int, expected: list[tuple[str, int]]
) -> None:
    log = partition(tmp_path)
    run(log, "abBnAnna")  # offsets 0 to 7; b is aborted at 2, a at 4 and open again from 7
    fetched = log.fetch_batches(offset, max_bytes, committed=True, at_least_one=True)
    assert fetched.aborted is not None
    found = [(entry.producer_id, entry.first_offset) for entry in fetched.aborted]
    assert found == [({"a": 1, "b": 2}[name], first) for name, first in expected]


def test_read_committed_stops_at_the_open_transaction_and_has_the_markers(tmp_path: Path) -> None:
    log = partition(tmp_path)
    run(log, "naXnan")
    fetched = log.fetch_batches(0, 1 << 20, committed=True, at_least_one=True)
    assert offsets(fetched.records) == [0, 1, 2, 3]
    assert offsets(log.fetch_batches(4, 1 << 20, committed=True, at_least_one=True).records) == []
    everything = log.fetch_batches(0, 1 << 20, committed=False, at_least_one=True)
    assert offsets(everything.records) == [0, 1, 2, 3, 4, 5]
    assert everything.aborted is None


def test_waiters_are_woken_by_data_and_by_markers_until_they_leave(tmp_path: Path) -> None:
    log = partition(tmp_path)
    woken: list[int] = []

    def wake() -> None:
        woken.append(log.last_stable_offset)

    log.change_callbacks.add_callback(wake)
    run(log, "aX")
    assert woken == [0, 2]
    log.change_callbacks.remove_callback(wake)
    run(log, "n")
    assert woken == [0, 2]


@pytest.mark.parametrize("segment_bytes", [300, 1 << 30])
def test_a_timestamp_finds_the_first_record_that_is_not_earlier(
    tmp_path: Path, segment_bytes: int
) -> None:
    log = partition(tmp_path, segment_bytes=segment_bytes, index_interval_bytes=150)
    times = [5, 3, 9, 9, 2, 20, 11]
    for time in times:
        log.append_produced(produced([b"v", b"w"], timestamp_ms=time))
    for wanted in range(22):
        expected = next(((2 * i, t) for i, t in enumerate(times) if t >= wanted), None)
        assert log.timestamps.find_offset(wanted, log.start_offset, log.end_offset) == expected
    assert log.timestamps.find_offset(9, log.start_offset, 4) is None
    assert log.timestamps.find_max_timestamp(log.start_offset) == (10, 20)


def test_log_append_time_is_the_clocks_and_is_told_to_the_producer(tmp_path: Path) -> None:
    clock = StillClock()
    log = partition(tmp_path, clock=clock, log_append_time=True)
    assert log.append_produced(produced(timestamp_ms=1)).log_append_time_ms == NOW_MS
    assert [r.timestamp_ms for r in next(iterate_batches(log.read(0, 1))).iterate_records()] == [
        NOW_MS
    ]


def test_a_timestamp_far_in_the_future_is_refused(tmp_path: Path) -> None:
    log = partition(tmp_path)
    log.append_produced(produced(timestamp_ms=NOW_MS + 3_600_000))
    with pytest.raises(Refused) as refused:
        log.append_produced(produced(timestamp_ms=NOW_MS + 3_600_001))
    assert refused.value.code == Code.INVALID_TIMESTAMP


def test_what_is_no_record_inside_a_batch_does_no_harm_to_look_ups(tmp_path: Path) -> None:
    log = partition(tmp_path)
    batch = produced([b"value"], timestamp_ms=9)
    data = bytearray(batch.data)
    data[61:] = b"\xff" * (len(data) - 61)
    log.append_produced(batch._replace(data=bytes(data)))
    assert log.timestamps.find_offset(5, log.start_offset, 1) == (0, 9)
    assert log.timestamps.find_max_timestamp(log.start_offset) == (0, 9)
