"""Measure what RocksDB's statistics cost a store's disk, and what it costs to read them.

    python -m benchmarks.rocksdb_statistics [--keys 100000] [--rounds 7]

A loop looks each key up and writes it again in batches of 1 000, as a store does below its cache.
Disks with and without statistics take turns; times are of the processor of this process, the
median of the rounds, and the ratio is of rounds that ran side by side.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.recorded import record
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams.monitoring.rocksdb_statistics import STATISTICS_NAMES

BATCH = 1_000
VALUE = b"x" * 100
OPERATIONS = ("look a key up", "write a key")


def main() -> None:
    """Measure both disks in turns, and print the times of an operation and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    keys = [f"key-{number:010}".encode() for number in range(options.keys)]
    random.Random(0).shuffle(keys)
    with tempfile.TemporaryDirectory() as directory:
        disks = [
            RocksDisk(Path(directory) / name, collect_statistics=collects)
            for name, collects in (("without", False), ("with", True))
        ]
        rounds: list[list[list[float]]] = []
        for number in range(options.rounds + 1):  # the first fills the stores
            order = disks if number % 2 else disks[::-1]
            times = {id(disk): _run_round(disk, keys, number) for disk in order}
            rounds.append([times[id(disk)] for disk in disks])
        _print_report(rounds[1:])
        _print_reading(disks[1])
        for disk in disks:
            disk.close()


def _run_round(disk: RocksDisk, keys: list[bytes], number: int) -> list[float]:
    """Return the microseconds of a look-up and of a write."""
    began = time.process_time()
    for key in keys:
        disk.get(key)
    looked = time.process_time()
    for first in range(0, len(keys), BATCH):
        changes = dict.fromkeys(keys[first : first + BATCH], VALUE)
        disk.write_changes(changes, StoreCheckpoint(number * len(keys) + first, "t"))
    written = time.process_time()
    return [1e6 * (looked - began) / len(keys), 1e6 * (written - looked) / len(keys)]


def _print_report(rounds: list[list[list[float]]]) -> None:
    print(f"{'operation':20} {'without, us':>12} {'with, us':>10} {'ratio':>7}")
    for index, operation in enumerate(OPERATIONS):
        without, with_them = ([each[side][index] for each in rounds] for side in (0, 1))
        ratio = statistics.median(b / a for a, b in zip(without, with_them, strict=True))
        record("rocksdb statistics", operation, "without", "us", without)
        record("rocksdb statistics", operation, "with", "us", with_them)
        medians = statistics.median(without), statistics.median(with_them)
        print(f"{operation:20} {medians[0]:12.2f} {medians[1]:10.2f} {ratio:7.3f}")


def _print_reading(disk: RocksDisk) -> None:
    """Print what one reading of the statistics costs, as a scrape reads them."""
    times = []
    for _ in range(50):
        began = time.process_time()
        disk.read_statistics(STATISTICS_NAMES)
        times.append(1e6 * (time.process_time() - began))
    record("rocksdb statistics", "read the statistics of a store", "with", "us", times)
    print(f"{'read the statistics':20} {statistics.median(times):23.0f}")


if __name__ == "__main__":
    main()
