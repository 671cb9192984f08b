"""Test which figures come of RocksDB's statistics, of a database that really counts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from state.database_statistics import DatabaseStatistic, parse_statistics
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams.monitoring.rocksdb_statistics import STATISTICS_NAMES, RocksStatisticsRecorder
from tests.unit.streams.runtime.fakes import Clock

STORE = ("0_0", "counts")
BYTES = 100
KEYS = 1_000


@pytest.fixture
def disk(tmp_path: Path) -> RocksDisk:
    return RocksDisk(tmp_path / "s", collect_statistics=True)


def write(disk: RocksDisk, first: int = 0) -> None:
    changes = {f"key-{n}".encode(): b"x" * BYTES for n in range(first, first + KEYS)}
    disk.write_changes(changes, StoreCheckpoint(first, "t"))


def test_rocksdb_has_each_statistic_that_figures_are_made_of(disk: RocksDisk) -> None:
    assert disk.read_statistics(STATISTICS_NAMES).keys() == STATISTICS_NAMES
    disk.close()


def test_a_disk_that_collects_none_has_none(tmp_path: Path) -> None:
    disk = RocksDisk(tmp_path / "s")
    write(disk)
    assert disk.read_statistics(STATISTICS_NAMES) == {}
    assert RocksStatisticsRecorder(Clock().monotonic_s).record_and_compute_figures(STORE, {}) == {}
    disk.close()


def test_rates_are_those_since_a_reading_of_30_to_60_seconds_ago(disk: RocksDisk) -> None:
    clock = Clock()
    recorder = RocksStatisticsRecorder(clock.monotonic_s)

    def read() -> dict[str, float]:
        return recorder.record_and_compute_figures(STORE, disk.read_statistics(STATISTICS_NAMES))

    write(disk)
    first = read()
    assert first["bytes-written-rate"] == 0, "there is nothing to compare with"
    assert first["bytes-written-total"] > KEYS * BYTES
    clock.elapsed_s += 10
    write(disk, KEYS)
    for number in range(KEYS * 2):
        disk.get(f"key-{number}".encode())
    second = read()
    written = second["bytes-written-total"] - first["bytes-written-total"]
    assert second["bytes-written-rate"] == pytest.approx(written / 10)
    assert second["bytes-read-total"] == 2 * KEYS * BYTES
    assert second["bytes-read-rate"] == pytest.approx(2 * KEYS * BYTES / 10)
    assert second["memtable-hit-ratio"] == 1
    clock.elapsed_s += 25
    assert read()["bytes-written-rate"] == pytest.approx(written / 35)
    clock.elapsed_s += 10
    assert read()["bytes-written-rate"] == pytest.approx(written / 45)
    clock.elapsed_s += 20
    # The first reading is 65 s old: the one after 35 s is compared with from now on.
    assert read()["bytes-written-rate"] == 0
    disk.close()


def test_flushes_and_lookups_in_tables_are_counted(disk: RocksDisk) -> None:
    clock = Clock()
    recorder = RocksStatisticsRecorder(clock.monotonic_s)
    recorder.record_and_compute_figures(STORE, disk.read_statistics(STATISTICS_NAMES))
    for first in range(0, 4 * KEYS, KEYS):  # more than goes through the log, so that it is flushed
        changes = [(f"key-{n}".encode(), b"x" * 4_096) for n in range(first, first + KEYS)]
        disk.load_changes(changes, StoreCheckpoint(first, "t"))
    disk.finish_load()
    for _ in range(2):
        for number in range(KEYS):
            disk.get(f"key-{number}".encode())
    clock.elapsed_s += 10
    figures = recorder.record_and_compute_figures(STORE, disk.read_statistics(STATISTICS_NAMES))
    assert figures["memtable-bytes-flushed-total"] > 0
    assert 0 < figures["memtable-flush-time-avg"] <= figures["memtable-flush-time-max"] < 10_000
    assert figures["block-cache-data-hit-ratio"] == pytest.approx(0.5, abs=0.1)
    assert figures["compaction-time-avg"] == 0
    disk.close()


def test_a_store_that_is_opened_again_begins_anew(tmp_path: Path) -> None:
    clock = Clock()
    recorder = RocksStatisticsRecorder(clock.monotonic_s)
    rates: list[float] = []
    for _ in range(2):
        disk = RocksDisk(tmp_path / "s", collect_statistics=True)
        if not rates:
            write(disk)
        read = recorder.record_and_compute_figures(STORE, disk.read_statistics(STATISTICS_NAMES))
        rates.append(read["bytes-written-rate"])
        clock.elapsed_s += 10
        disk.close()
    assert rates == [0, 0], "never below 0"


def test_readings_of_closed_stores_are_forgotten() -> None:
    clock = Clock()
    recorder = RocksStatisticsRecorder(clock.monotonic_s)
    rates = []
    for count, open_store in ((5, STORE), (25, ("0_1", "counts")), (45, STORE)):
        counts = dict.fromkeys(STATISTICS_NAMES, DatabaseStatistic(count))
        rates.append(recorder.record_and_compute_figures(STORE, counts)["bytes-read-rate"])
        recorder.forget_other_stores({open_store})
        clock.elapsed_s += 10
    assert rates == [0, 2, 0]


def test_a_line_of_each_kind_is_parsed_and_others_are_not() -> None:
    text = (
        "rocksdb.bytes.written COUNT : 1188890\nrocksdb.other COUNT : 1\n"
        "rocksdb.db.flush.micros P50 : 2.5 P95 : 3.0 P99 : 4.0 P100 : 5.000 COUNT : 2 SUM : 8\n"
    )
    found = parse_statistics(text, {"rocksdb.bytes.written", "rocksdb.db.flush.micros"})
    assert found == {
        "rocksdb.bytes.written": DatabaseStatistic(1_188_890),
        "rocksdb.db.flush.micros": DatabaseStatistic(2, 8.0, 5.0),
    }
