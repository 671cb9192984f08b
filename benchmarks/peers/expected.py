"""Compute from the inputs what an application must have written, and compare it with what it has.

What is expected is computed by loops over the inputs; it shares only the functions that a topology
hands to its steps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import merge

from benchmarks.peers.inputs import InputRecord
from benchmarks.peers.topologies import (
    GAP_MS,
    WINDOW_MS,
    WITHIN_MS,
    choose_group,
    extract_foreign_key,
    join_values,
)

Inputs = Sequence[Iterable[InputRecord]]
"""The records of the left topic, and of the right one if there is one."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Holds the final value of each key, and how many records there are at least and at most."""

    final: dict[bytes, bytes]
    at_least: int
    at_most: int


def find_difference(
    expected: Expected, written: Iterable[tuple[bytes, bytes | None]]
) -> str | None:
    """Return how keys and values that were written differ from what is expected; None if not."""
    count = 0
    final: dict[bytes, bytes] = {}
    for key, value in written:
        count += 1
        if value is None:
            final.pop(key, None)
        else:
            final[key] = value
    if not expected.at_least <= count <= expected.at_most:
        return f"{count} records, expected {expected.at_least} to {expected.at_most}"
    if final == expected.final:
        return None
    keys = expected.final.keys() | final.keys()
    wrong = sorted(key for key in keys if final.get(key) != expected.final.get(key))
    shown = [f"{key!r}: {final.get(key)!r} and not {expected.final.get(key)!r}" for key in wrong]
    return f"{len(wrong)} keys have wrong final values: {'; '.join(shown[:3])}"


def expect_mapped(inputs: Inputs) -> Expected:
    """Return what mapping each value to upper case writes."""
    values = [(each.key, each.value.upper()) for each in inputs[0]]
    return _expect_exactly(len(values), _encode_values(dict(values)))


def expect_counts(inputs: Inputs) -> Expected:
    """Return what counting by key writes."""
    return _expect_counts_by(inputs[0], lambda each: each.key.encode())


def expect_group_counts(inputs: Inputs) -> Expected:
    """Return what counting by a new key writes."""
    return _expect_counts_by(inputs[0], lambda each: choose_group(each.key, each.value).encode())


def expect_window_counts(inputs: Inputs) -> Expected:
    """Return what counting in tumbling windows writes."""
    return _expect_counts_by(inputs[0], _window_key)


def expect_closed_windows(inputs: Inputs) -> Expected:
    """Return what counting in tumbling windows writes when each closes: one result of each.

    The windows of the records that close the others stay open.
    """
    records = (each for each in inputs[0] if each.partition is None)
    final = _expect_counts_by(records, _window_key).final
    return _expect_exactly(len(final), final)


def expect_sessions(inputs: Inputs) -> Expected:
    """Return what counting in sessions writes: a session that grows deletes what it was before."""
    sessions: dict[str, list[list[int]]] = {}
    count = 0
    for key, _, timestamp_ms, _ in inputs[0]:
        found = sessions.setdefault(key, [])
        if found and timestamp_ms - found[-1][1] <= GAP_MS:
            found[-1][1] = timestamp_ms
            found[-1][2] += 1
            count += 2
        else:
            found.append([timestamp_ms, timestamp_ms, 1])
            count += 1
    final = {
        key.encode() + struct.pack(">qq", end_ms, start_ms): struct.pack(">q", records)
        for key, found in sessions.items()
        for start_ms, end_ms, records in found
    }
    return _expect_exactly(count, final)


def expect_enriched(inputs: Inputs) -> Expected:
    """Return what joining a stream with a table that is there before it writes."""
    rows = {each.key: each.value for each in inputs[1]}
    joined = [(each.key, join_values(each.value, rows.get(each.key))) for each in inputs[0]]
    return _expect_exactly(len(joined), _encode_values(dict(joined)))


def expect_joined_streams(inputs: Inputs) -> Expected:
    """Return what joining two streams writes, of which the right has at most one partner each."""
    lefts: dict[str, InputRecord] = {}
    final: dict[str, str] = {}
    count = 0
    for each, is_left in _merge_by_time(inputs):
        if is_left:
            lefts[each.key] = each
        elif each.timestamp_ms - lefts[each.key].timestamp_ms <= WITHIN_MS:
            final[each.key] = join_values(lefts[each.key].value, each.value)
            count += 1
    return _expect_exactly(count, _encode_values(final))


def expect_joined_tables(inputs: Inputs) -> Expected:
    """Return what joining two tables writes: a row for each update of a key that both have."""
    tables: tuple[dict[str, str], dict[str, str]] = ({}, {})
    final: dict[str, str] = {}
    count = 0
    for each, is_left in _merge_by_time(inputs):
        tables[not is_left][each.key] = each.value
        if each.key in tables[is_left]:
            final[each.key] = join_values(tables[0][each.key], tables[1][each.key])
            count += 1
    return _expect_exactly(count, _encode_values(final))


def expect_joined_by_foreign_key(inputs: Inputs) -> Expected:
    """Return what a foreign-key join writes: a row for each update of the left, or fewer.

    An answer to an update that another one has followed meanwhile is dropped, as in Kafka Streams.
    """
    rows = {each.key: each.value for each in inputs[1]}
    final: dict[str, str] = {}
    count = 0
    for each in inputs[0]:
        count += 1
        final[each.key] = join_values(each.value, rows[extract_foreign_key(each.key, each.value)])
    return Expected(_encode_values(final), len(final), count)


def _expect_counts_by(
    records: Iterable[InputRecord], create_key: Callable[[InputRecord], bytes]
) -> Expected:
    counts: dict[bytes, int] = {}
    for each in records:
        key = create_key(each)
        counts[key] = counts.get(key, 0) + 1
    final = {key: struct.pack(">q", count) for key, count in counts.items()}
    return _expect_exactly(sum(counts.values()), final)


def _window_key(record: InputRecord) -> bytes:
    start_ms = record.timestamp_ms // WINDOW_MS * WINDOW_MS
    return record.key.encode() + struct.pack(">q", start_ms)


def _merge_by_time(inputs: Inputs) -> Iterable[tuple[InputRecord, bool]]:
    left = ((each, True) for each in inputs[0])
    right = ((each, False) for each in inputs[1])
    return merge(left, right, key=lambda pair: pair[0].timestamp_ms)


def _encode_values(values: dict[str, str]) -> dict[bytes, bytes]:
    return {key.encode(): value.encode() for key, value in values.items()}


def _expect_exactly(count: int, final: dict[bytes, bytes]) -> Expected:
    return Expected(final, count, count)
