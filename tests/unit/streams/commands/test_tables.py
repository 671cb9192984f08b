"""Test that tables are plain where piped, and that the group's tables fit a terminal."""

from __future__ import annotations

import io
from uuid import UUID

import pytest
from rich.console import Console

from streams.commands.group_command import print_report
from streams.commands.tables import shorten_ids
from streams.monitoring.group_report import (
    ActiveTask,
    GroupReport,
    MemberReport,
    PartitionLag,
    StandbyTask,
)


def uuid(number: int) -> str:
    return str(UUID(int=number << 96))


def report_member(number: int) -> MemberReport:
    lag = PartitionLag("orders-by-customer", number, 5, 123_456, 123_451)
    return MemberReport(
        member_id=f"payments-{uuid(number)}-0-{uuid(99)}",
        instance_id=f"payments-{uuid(number)}-0",
        host="192.168.100.100",
        process=uuid(number),
        directory=uuid(100 + number),
        tags={"rack": "eu-west-1a"},
        topology="3f" * 32,
        generation=123,
        active=[ActiveTask(f"0_{number}", 123_451, [lag])],
        standby=[StandbyTask(f"1_{number}", 17)],
        warmup=[],
        revoked=[f"2_{number}"],
        rejoin_ms=0,
        problem="",
    )


@pytest.mark.parametrize(
    ("ids", "prefix", "short"),
    [
        ([f"a-{uuid(1)}-0", f"a-{uuid(2)}-0"], "a-", ["00000001-0", "00000002-0"]),
        (["a-one", "a-two"], "a-", ["one", "two"]),
        (["a-"], "a-", ["a-"]),
        (["x" * 30 + "1", "x" * 30 + "2"], "", ["x" * 30 + "1", "x" * 30 + "2"]),
        (["y" * 30], "", ["y" * 24]),
        ([], "", []),
    ],
)
def test_ids_are_shortened_to_what_tells_them_apart(
    ids: list[str], prefix: str, short: list[str]
) -> None:
    assert [shorten_ids(ids, prefix)[each] for each in ids] == short


def test_uuids_that_begin_alike_are_shown_as_far_as_they_differ() -> None:
    ids = ["00000001-0000-4000-8000-00000000000a", "00000001-0000-4000-8000-00000000000b"]
    assert list(shorten_ids(ids).values()) == ids


def test_the_tables_of_a_group_fit_a_hundred_columns_and_are_plain_where_piped() -> None:
    report = GroupReport("payments", "Stable", 123, [report_member(n) for n in range(3)], [])
    written = io.StringIO()
    print_report(report, Console(file=written, width=1_000))
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    assert max(map(len, lines)) <= 100
    assert all(line.isascii() or "≤" in line for line in lines), "no lines are drawn"
    (member,) = [line.split() for line in lines if line.startswith("00000001-0")]
    assert member[:4] == ["00000001-0", "192.168.100.100", "00000065", "rack=eu-west-1a"]
    assert " 1 active 1 standby 1 revoking " in written.getvalue()
