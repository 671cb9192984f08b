"""Test that the files of a partition continue each other over all exports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.spark.exporting.manifest import ExportedFile, ExportManifest
from streams.spark.exporting.verify import find_gaps_and_overlaps
from streams.spark.source.ranges import OffsetRange
from tests.unit.streams.spark.exporting.test_manifest import manifest


def exported(number: int, end: int, *ranges: tuple[int, int]) -> ExportManifest:
    """Return the manifest of an export of `t[0]` with these files, which claims to end at `end`."""
    found = manifest(number, None)
    [name] = found.topics
    topic = replace(found.topics[name], ends={0: end})
    files = tuple(
        ExportedFile(
            path=str(OffsetRange(name, 0, first, until)),
            topic=name,
            partition=0,
            first=first,
            until=until,
            records=until - first,
            no_records=0,
            bytes=1,
            sha256="",
        )
        for first, until in ranges
    )
    return replace(found, topics={name: topic}, files=files)


@pytest.mark.parametrize(
    "manifests",
    [
        [exported(1, 20, (10, 20)), exported(2, 20), exported(3, 40, (30, 40), (20, 30))],
        [exported(1, 0), exported(2, 5, (0, 5))],
    ],
)
def test_what_goes_on_is_right(manifests: list[ExportManifest]) -> None:
    assert list(find_gaps_and_overlaps(manifests)) == []


@pytest.mark.parametrize(
    ("manifests", "said"),
    [
        ([exported(1, 20, (10, 15), (16, 20))], "15..15: in no file"),
        ([exported(1, 20, (10, 20)), exported(2, 30, (25, 30))], "20..24: in no file"),
        ([exported(1, 20, (10, 20)), exported(2, 30, (15, 30))], "15..19: in two files"),
        ([exported(1, 30, (10, 20))], "up to offset 20, and export 1 says up to 30"),
        ([exported(1, 20, (10, 20)), exported(2, 15)], "up to offset 20, and export 2 says up"),
    ],
)
def test_what_does_not_is_told(manifests: list[ExportManifest], said: str) -> None:
    [line] = find_gaps_and_overlaps(manifests)
    assert said in line
