"""Test that the end of a damaged batch is searched in windows, as a file may have a gigabyte."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from coordinator.log.batch import copy_with_offset
from coordinator.log.damage import WINDOW_BYTES, DamagedRange, find_damaged_range
from coordinator.log.segment import LogSegment
from tests.own_batches import encode_batch

PATH = Path("/data/t-0/00000000000000000000.log")


@dataclass
class Reads:
    """Wraps the file of a segment and counts the bytes read of it, at once and in all."""

    content: bytes
    most: int = 0
    total: int = 0
    path: Path = PATH
    file: Any = field(init=False)

    def __post_init__(self) -> None:
        self.file = self

    def read(self, count: int, at: int) -> bytes:
        self.most = max(self.most, count)
        found = self.content[at : at + count]
        self.total += len(found)
        return found

    def size(self) -> int:
        return len(self.content)


def batch(offset: int, value: bytes = b"value") -> bytes:
    return bytes(copy_with_offset(encode_batch([(b"k", value)], timestamp_ms=1), offset, None))


def end_of_damage(content: bytes, start: int = 0, offset: int = 0) -> tuple[int, Reads]:
    reads = Reads(content)
    found = find_damaged_range(cast(LogSegment, reads), start, offset)
    assert found == DamagedRange(PATH, start, found.end)
    assert reads.most <= WINDOW_BYTES + 16
    return found.end, reads


def with_wrong_length(data: bytes) -> bytes:
    return data[:8] + (7).to_bytes(4, "big") + data[12:]


def test_the_length_of_the_batch_is_tried_before_anything_is_searched() -> None:
    damaged = batch(0, bytes(5 * WINDOW_BYTES))
    damaged = damaged[:-1] + b"\xff"
    later = batch(2, bytes(3 * WINDOW_BYTES))
    end, reads = end_of_damage(damaged + batch(1) + later)
    assert (end, reads.total < 1_000) == (len(damaged), True)
    assert end_of_damage(damaged + later)[0] == len(damaged)
    assert end_of_damage(damaged)[0] == len(damaged)


@pytest.mark.parametrize("edge", range(-20, 80, 3))
def test_a_batch_is_found_on_the_edge_of_a_window(edge: int) -> None:
    at = WINDOW_BYTES + edge
    damaged = with_wrong_length(batch(0, bytes(at - 200)))
    damaged += bytes(at - len(damaged))
    rest = batch(1) + batch(2)
    assert end_of_damage(damaged + rest)[0] == at
    assert end_of_damage(batch(0) + damaged + rest, start=len(batch(0)))[0] == at + len(batch(0))
    assert end_of_damage(damaged + rest[:-1], offset=1)[0] == len(damaged + rest[:-1])


def test_what_only_looks_like_a_batch_is_passed_over() -> None:
    broken = batch(1)[:-1] + b"\xff"
    cut = batch(3, bytes(2 * WINDOW_BYTES))[:-1]
    content = with_wrong_length(batch(0)) + broken + batch(0) + batch(2) + cut
    at = len(batch(0)) + len(broken) + len(batch(0))
    assert end_of_damage(content)[0] == at
    rest = with_wrong_length(batch(2)) + cut
    assert end_of_damage(rest, offset=2)[0] == len(rest)


def test_nothing_is_read_behind_the_end() -> None:
    for size in range(80):
        content = with_wrong_length(batch(0))[:size]
        assert end_of_damage(content)[0] == len(content)
