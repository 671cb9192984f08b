"""Test which records of inputs are said to be lost before they are processed, or soon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from streams.common.topic_partitions import Partition
from streams.doctor.findings import DoctorFinding, Verdict
from streams.doctor.input_facts import fetch_oldest_unread
from streams.doctor.input_retention import OldestUnread, check_retention
from streams.doctor.inputs import InputProgress

FINE, WARNING, ERROR = Verdict.FINE, Verdict.WARNING, Verdict.ERROR
LINES = [Partition("lines", number) for number in range(4)]
MINUTE_MS = 60_000
HOUR_MS, DAY_MS = 60 * MINUTE_MS, 1_440 * MINUTE_MS
NOW_MS = int(datetime(2026, 11, 29, 22, 13, tzinfo=UTC).timestamp() * 1_000)
UNREAD = InputProgress(0, 40, 1_170, 50)


def check_one(
    age_ms: int, retention_ms: int = HOUR_MS, *, has_workers: bool = True
) -> DoctorFinding:
    record = OldestUnread(NOW_MS - age_ms, retention_ms)
    found = check_retention({LINES[0]: UNREAD}, {LINES[0]: record}, NOW_MS, has_workers=has_workers)
    (finding,) = found
    return finding


def test_the_oldest_unread_record_is_named_with_its_age_and_when_it_may_go() -> None:
    found = check_one(56 * MINUTE_MS)
    assert found.what == (
        "the oldest unread record of lines[0] is 56 min old, and retention.ms is 3600000 (60 min): "
        "it may be deleted from 22:17 UTC on. 1,130 records of lines are unread"
    )
    assert "240 s from now" not in found.consequence
    assert "4 min from now" in found.consequence
    assert "kafka-configs.sh --alter --entity-type topics --entity-name lines" in found.remedy
    assert "retention.ms=-1" in found.remedy
    assert found.remedy.endswith("Then set retention.ms=3600000 again")


@pytest.mark.parametrize(
    ("age_ms", "retention_ms", "has_workers", "expected"),
    [
        (47 * MINUTE_MS, HOUR_MS, True, FINE),
        (47 * MINUTE_MS, HOUR_MS, False, FINE),
        (49 * MINUTE_MS, HOUR_MS, True, ERROR),  # 11 minutes are left
        (8 * DAY_MS + HOUR_MS, 10 * DAY_MS, True, WARNING),
        (8 * DAY_MS + HOUR_MS, 10 * DAY_MS, False, ERROR),
        (9 * DAY_MS + HOUR_MS, 10 * DAY_MS, True, ERROR),  # less than a tenth is left
        (11 * DAY_MS, 10 * DAY_MS, True, ERROR),
    ],
)
def test_it_is_an_error_where_little_time_is_left_or_nobody_processes(
    age_ms: int, retention_ms: int, has_workers: bool, expected: Verdict
) -> None:
    assert check_one(age_ms, retention_ms, has_workers=has_workers).verdict is expected


def test_what_has_to_be_started_first_is_said() -> None:
    assert "no worker runs: start workers" in check_one(HOUR_MS, has_workers=False).remedy
    assert "start workers" not in check_one(HOUR_MS).remedy


def test_records_that_are_due_already_may_go_at_any_moment() -> None:
    assert (
        "it may be deleted at any moment, since 2026-11-27 22:13 UTC"
        in check_one(3 * DAY_MS, DAY_MS).what
    )


def test_each_topic_is_a_finding_with_its_own_command() -> None:
    places = [LINES[0], LINES[1], Partition("words", 0)]
    oldest = {p: OldestUnread(NOW_MS - HOUR_MS - p.number, HOUR_MS) for p in places}
    found = list(check_retention(dict.fromkeys(places, UNREAD), oldest, NOW_MS, has_workers=True))
    assert [each.verdict for each in found] == [ERROR, ERROR]
    assert "record of lines[1]" in found[0].what
    assert "so it is soon with lines[0]" in found[0].what
    assert "2,260 records of lines are unread" in found[0].what
    assert "--entity-name words" in found[1].remedy


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (InputProgress(0, 90, 100, 50), FINE),
        (InputProgress(0, 40, 100, None), FINE),
        (InputProgress(0, 100, 100, 100), FINE),
        (InputProgress(60, 40, 100, 80), ERROR),
    ],
)
def test_records_that_are_gone(progress: InputProgress, expected: Verdict) -> None:
    (found,) = check_retention({LINES[0]: progress}, {}, NOW_MS, has_workers=True)
    assert found.verdict is expected
    assert "lines[0]" in found.what or expected is FINE


@pytest.mark.parametrize(
    ("progress", "oldest", "expected"),
    [
        (InputProgress(0, 0, 1_000, 900), None, WARNING),  # a gap at the first unread offsets
        (InputProgress(0, 0, 1_000, 101), None, WARNING),
        (InputProgress(0, 0, 1_000, 100), None, FINE),  # all of them were looked at
        (InputProgress(0, 900, 1_000, 2_000), None, FINE),
        (InputProgress(0, 900, 1_000, 900), None, FINE),
        (InputProgress(0, 9, 20, 15), -1, WARNING),
        (InputProgress(0, 9, 20, 15), NOW_MS, FINE),
    ],
)
def test_expiring_records_of_an_unknown_age_are_told_without_one(
    progress: InputProgress, oldest: int | None, expected: Verdict
) -> None:
    records = {} if oldest is None else {LINES[0]: OldestUnread(oldest, HOUR_MS)}
    (found,) = check_retention({LINES[0]: progress}, records, NOW_MS, has_workers=True)
    assert found.verdict is expected
    assert " old, " not in found.what
    if expected is WARNING:
        assert f"before offset {progress.expiring_offset} is known to be of the last 80%" in (
            found.what
        )
        assert "retention.ms=-1" in found.remedy
        (error,) = check_retention({LINES[0]: progress}, records, NOW_MS, has_workers=False)
        assert error.verdict is ERROR
        assert "start workers" in error.remedy


def test_partitions_of_a_known_and_an_unknown_age_are_told_apart() -> None:
    inputs = {LINES[0]: UNREAD, **dict.fromkeys(LINES[1:3], InputProgress(0, 0, 1_000, 900))}
    oldest = {LINES[0]: OldestUnread(NOW_MS - HOUR_MS, HOUR_MS)}
    dated, undated = check_retention(inputs, oldest, NOW_MS, has_workers=True)
    assert "record of lines[0] is 60 min old" in dated.what
    assert undated.what.endswith("so it is with lines[2]")


def test_lost_records_are_one_finding_for_a_topic() -> None:
    lost = {p: InputProgress(9, 2, 10) for p in LINES[:3]}
    (found,) = check_retention(lost, {}, NOW_MS, has_workers=True)
    assert "lines[0] begins at offset 9" in found.what
    assert "so it is with lines[1], lines[2]" in found.what
    assert "up to 21 records" in found.consequence


class FakeReader:
    """Has the records of partitions by offset and timestamp; other offsets are of no record."""

    def __init__(self, records: Mapping[Partition, Mapping[int, int]]) -> None:
        self._records = records
        self.closed = False

    def read_records(
        self, starts: Mapping[Partition, int], ends: Mapping[Partition, int]
    ) -> Iterator[Any]:
        for place, start in starts.items():
            for offset, timestamp_ms in self._records[place].items():
                if start <= offset < ends[place]:
                    yield SimpleNamespace(
                        topic=lambda place=place: place.topic,
                        partition=lambda place=place: place.number,
                        timestamp=lambda at=timestamp_ms: (1, at),
                    )

    def close(self) -> None:
        self.closed = True


def fetch_of(
    progress: Mapping[Partition, InputProgress], records: Mapping[Partition, Mapping[int, int]]
) -> tuple[dict[Partition, OldestUnread], FakeReader]:
    reader = FakeReader(records)

    def read_settings(topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return {topic: {"retention.ms": str(HOUR_MS)} for topic in topics}

    clients = SimpleNamespace(create_reader=lambda *, committed_only: reader)
    cluster: Any = SimpleNamespace(clients=lambda: clients, topic_settings=read_settings)
    return fetch_oldest_unread(cluster, progress), reader


def test_the_first_unread_record_is_looked_at_and_markers_are_passed_over() -> None:
    progress = {LINES[0]: UNREAD, LINES[1]: InputProgress(0, 9, 10, 10)}
    found, reader = fetch_of(progress, {LINES[0]: {39: 1, 41: 7, 42: 8}, LINES[1]: {}})
    assert found == {LINES[0]: OldestUnread(7, HOUR_MS)}
    assert reader.closed


def test_partitions_that_lose_nothing_soon_are_not_read() -> None:
    progress = {LINES[0]: InputProgress(0, 90, 100, 50), LINES[1]: InputProgress(0, 4, 9, None)}
    found, reader = fetch_of(progress, {})
    assert (found, reader.closed) == ({}, False)
