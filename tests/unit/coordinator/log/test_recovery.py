from __future__ import annotations

from pathlib import Path

import pytest

from coordinator import repair
from coordinator.log.batch import copy_with_offset, iterate_batches
from coordinator.log.partition import PartitionLog
from coordinator.log.recovery import CorruptLog
from tests.unit.coordinator.log.logs import NOW_MS, partition, produced


def written(directory: Path, count: int, *, segment_bytes: int = 1 << 30) -> list[Path]:
    """Write batches of one producer, each in its own transaction; return the `.log` files."""
    directory.mkdir(exist_ok=True)
    log = partition(directory, segment_bytes=segment_bytes)
    for i in range(count):
        log.append_produced(produced([b"value"], producer_id=7, sequence=i, transactional=True))
        log.append_marker(7, 0, i % 2 == 0, 0)
    return [path for path, _ in log.list_segment_files()]


def summary(log: PartitionLog) -> object:
    known = log.producers.find_producer(7)
    assert known is not None
    return (
        log.end_offset,
        log.last_stable_offset,
        known,
        list(log.producers.iterate_producers()),
        log.find_aborted_transactions(0, 1_000),
        log.timestamps.find_max_timestamp(log.start_offset),
    )


@pytest.mark.parametrize("segment_bytes", [200, 1 << 30])
def test_a_restart_rebuilds_the_same_state(tmp_path: Path, segment_bytes: int) -> None:
    log = partition(tmp_path, segment_bytes=segment_bytes)
    for i in range(20):
        log.append_produced(produced([b"v"], producer_id=7, sequence=i, transactional=True))
        if i % 3 == 0:
            log.append_marker(7, 0, i % 2 == 0, 0)
        again = partition(tmp_path, segment_bytes=segment_bytes)
        assert summary(again) == summary(log)


def test_a_torn_tail_is_cut_wherever_it_was_torn(tmp_path: Path) -> None:
    [path] = written(tmp_path, 3)
    whole = path.read_bytes()
    tail = copy_with_offset(produced([b"torn"]).data, 6, None)
    for torn_at in range(1, len(tail)):
        path.write_bytes(whole + tail[:torn_at])
        log = partition(tmp_path)
        assert log.end_offset == 6
        assert path.read_bytes() == whole
    assert partition(tmp_path).append_produced(produced()).base_offset == 6


def test_zeros_at_the_end_are_cut(tmp_path: Path) -> None:
    [path] = written(tmp_path, 3)
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(5_000))
    assert partition(tmp_path).end_offset == 6
    assert path.read_bytes() == whole


@pytest.mark.parametrize("damaged_byte", [7, 9, 16, 20, 30, 65])
def test_damage_in_the_middle_is_reported_and_nothing_is_cut(
    tmp_path: Path, damaged_byte: int
) -> None:
    [path] = written(tmp_path, 3)
    data = bytearray(path.read_bytes())
    second = int.from_bytes(data[8:12], "big") + 12
    data[second + damaged_byte] ^= 0x80
    path.write_bytes(data)
    with pytest.raises(CorruptLog) as corrupt:
        partition(tmp_path)
    assert f"{path}: damaged at byte {second}" in str(corrupt.value)
    assert path.read_bytes() == data


def test_an_earlier_segment_that_ends_too_early_is_reported(tmp_path: Path) -> None:
    paths = written(tmp_path, 6, segment_bytes=200)
    assert len(paths) > 2
    paths[0].write_bytes(paths[0].read_bytes()[:-1])
    with pytest.raises(CorruptLog) as corrupt:
        partition(tmp_path)
    assert str(paths[0]) in str(corrupt.value)


def test_what_the_reports_of_damage_advise_makes_the_log_start_again(tmp_path: Path) -> None:
    paths = written(tmp_path, 6, segment_bytes=200)
    whole = paths[1].read_bytes()
    first = int.from_bytes(whole[8:12], "big") + 12
    paths[1].write_bytes(whole[:-1])
    with pytest.raises(CorruptLog) as corrupt:
        partition(tmp_path)
    (tmp_path / "meta.properties").touch()  # as a broker's data directory has it
    _, _, advised = str(corrupt.value).partition("python -m coordinator.repair ")
    assert repair.main(advised.split()) == 0
    log = partition(tmp_path)
    assert log.end_offset == 12
    log.close()
    paths[1].write_bytes(whole[:first])
    with pytest.raises(CorruptLog, match=rf"{paths[2]}.*remove the segments from this one on"):
        partition(tmp_path)
    for path in paths[2:]:
        path.unlink()
    log = partition(tmp_path)
    assert log.end_offset == int(paths[1].stem) + 1
    log.append_marker(7, 0, True, 0)


@pytest.mark.parametrize("is_kafkas", [True, False])
@pytest.mark.parametrize("is_compacted", [True, False])
def test_only_where_kafka_has_compacted_a_log_may_offsets_be_missing_between_segments(
    tmp_path: Path, is_kafkas: bool, is_compacted: bool
) -> None:
    paths = written(tmp_path, 6, segment_bytes=200)
    data = paths[1].read_bytes()
    paths[1].write_bytes(data[: int.from_bytes(data[8:12], "big") + 12])
    (paths[1].parent / "checkpoint").unlink(missing_ok=True)
    if is_kafkas:
        (paths[1].parent / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    if is_kafkas and is_compacted:
        for _ in range(2):  # the second start has a checkpoint
            log = partition(tmp_path, is_compacted=is_compacted)
            assert log.end_offset == 12
            assert [
                batch.base_offset for batch in iterate_batches(log.read(int(paths[1].stem), 200))
            ]
            log.close()
    else:
        with pytest.raises(CorruptLog, match=r"copy its leader-epoch-checkpoint, too"):
            partition(tmp_path, is_compacted=is_compacted)


def test_damage_before_batches_of_another_leader_epoch_is_not_taken_for_a_torn_tail(
    tmp_path: Path,
) -> None:
    [path] = written(tmp_path, 3)
    data = bytearray(path.read_bytes())
    at = 0
    while at < len(data):  # the epoch is not in the checksum
        data[at + 12 : at + 16] = (300).to_bytes(4, "big")
        at += int.from_bytes(data[at + 8 : at + 12], "big") + 12
    data[30] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptLog, match="damaged at byte 0"):
        partition(tmp_path)
    assert path.read_bytes() == data


def test_index_files_are_kafkas(tmp_path: Path) -> None:
    log = partition(tmp_path, index_interval_bytes=100)
    for i in range(4):
        log.append_produced(produced([b"v" * 100], timestamp_ms=NOW_MS + i))
    log.append_produced(produced(producer_id=7, transactional=True))
    log.append_marker(7, 0, False, 0)
    size = produced([b"v" * 100]).size
    log.close()
    files = {path.suffix: path.read_bytes() for path in log.directory.iterdir()}
    assert files[".index"][:16] == b"".join(
        value.to_bytes(4, "big") for value in (1, size, 2, 2 * size)
    )
    assert files[".timeindex"][:12] == (NOW_MS + 1).to_bytes(8, "big") + (1).to_bytes(4, "big")
    assert files[".txnindex"] == bytes(2) + b"".join(
        value.to_bytes(8, "big") for value in (7, 4, 5, 6)
    )
