"""Test that the table of every command fits a terminal of 100 columns, and is plain where piped.

Each is built of long ids, topics and hosts. Nothing but ends of UUIDs may be missing: what is too
long for its column goes on in the next line of the cell.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from streams import App, serdes
from streams.commands.acls_command import print_acls
from streams.commands.group_command import print_report
from streams.commands.metrics_command import build_table
from streams.commands.output import print_rows
from streams.commands.plan_printing import print_plan
from streams.commands.tables import create_console
from streams.monitoring.group_report import (
    ActiveTask,
    GroupReport,
    MemberReport,
    PartitionLag,
    StandbyTask,
)
from streams.monitoring.scraped_figures import MetricsOutput
from streams.runtime.access.acls import derive_acls
from streams.topology.compare_versions import compare_topologies
from streams.topology.description import describe_topology

COLUMNS = 100
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
LONG = "payments-of-all-our-customers-in-every-country-and-of-each-of-their-subsidiaries"
TOPIC = f"{LONG}-{'x' * 60}"
HOST = f"worker-0.{LONG}.internal.example.com"
MANY = [f"{TOPIC}-{number}" for number in range(200)]


def uuid(number: int) -> str:
    return str(UUID(int=number << 96))


def print_group() -> None:
    members = [
        MemberReport(
            member_id=f"{LONG}-{uuid(number)}-0-{uuid(99)}",
            instance_id=f"{LONG}-{uuid(number)}-0",
            host=HOST,
            process=uuid(50 + number),
            directory=uuid(100 + number),
            tags={"rack": LONG},
            topology="3f" * 32,
            generation=123,
            active=[
                ActiveTask(f"0_{number}", 7, [PartitionLag(TOPIC, number, 5, 123_456, 123_451)])
            ],
            standby=[StandbyTask(f"1_{number}", 17)],
            warmup=[],
            revoked=[f"2_{number}"],
            rejoin_ms=0,
            problem="",
        )
        for number in range(3)
    ]
    unassigned = [PartitionLag(name, 0, 0, 1, 1) for name in MANY]
    print_report(GroupReport(LONG, "Stable", 1, members, unassigned), create_console())


def count(topic: str, store: str) -> App:
    app = App(LONG)
    app.stream(topic, key=serdes.string, value=serdes.string).group_by_key().count(store=store)
    return app


def print_rights() -> None:
    app = count(TOPIC, "counts")
    print_acls(derive_acls(app.topology(), app.config), create_console())


def print_upgrade() -> None:
    old, new = (describe_topology(count(TOPIC, each).topology()) for each in (LONG, f"{LONG}-2"))
    print_plan(compare_topologies(old, new, {TOPIC: 4}), create_console())


def rows_printer(**cells: Any) -> Callable[[], None]:
    return lambda: print_rows(tuple(cells), [cells, cells], as_json=False)


def print_figures() -> None:
    large: dict[str, Any] = dict.fromkeys(
        ("records_in_rate", "lag", "recoveries", "stores_disk_bytes"), 1e15
    )
    counts = {"RUNNING": 100, "REBALANCING": 100}
    summary = MetricsOutput([HOST], [], counts, 100, 100, counts | {"RESTORING": 9}, **large)
    create_console().print(build_table(summary))


# The columns of each command, with long cells.
TABLES: dict[str, Callable[[], None]] = {
    "group describe": print_group,
    "metrics": print_figures,
    "acls": print_rights,
    "plan": print_upgrade,
    "topics": rows_printer(topic=TOPIC, partitions=100, offsets=10**15),
    "topics describe": rows_printer(
        partition=100,
        start=10**15,
        stable_end=10**15,
        end=10**15,
        leader=HOST,
        replicas=list(range(40)),
        in_sync=list(range(40)),
    ),
    "group list": rows_printer(group=TOPIC, state="PreparingRebalance", protocol="consumer"),
    "txn list": rows_printer(
        transactional_id=f"{LONG}-{uuid(1)}-0",
        state="PrepareCommit",
        producer_id=10**15,
        epoch=32_767,
        started="2026-01-01T00:00:00.000Z",
        timeout_ms=900_000,
        topics=MANY,
    ),
    "txn list --topic": rows_printer(
        topic=TOPIC,
        partition=100,
        start_offset=10**15,
        producer_id=10**15,
        epoch=32_767,
        last_write="2026-01-01T00:00:00.000Z",
        transactional_id=f"{LONG}-{uuid(1)}-0",
        hanging=True,
    ),
    "state": rows_printer(
        task="global",
        store=TOPIC,
        kind="timestamped windowed",
        entries="about 1000000000",
        bytes=10**15,
        changelog_offset=10**15,
        written="2026-01-01T00:00:00.000Z",
        used_by=f"process 4194304 on {HOST}",
    ),
    "reset": rows_printer(change="offset", what=f"{TOPIC}[100]", now=10**15, then=0),
    "restore-offsets": rows_printer(input=f"{TOPIC}[100]", now=None, then=10**15, proof=LONG * 3),
    "preview": rows_printer(
        member=f"{LONG}-{uuid(1)}", now=f"{TOPIC}:1,2", then=f"{TOPIC}:1", gains="", loses=LONG
    ),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def standard_output(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield stream


@pytest.mark.parametrize("command", TABLES)
def test_a_table_fits_a_terminal_and_leaves_nothing_out(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("COLUMNS", str(COLUMNS)), ("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with standard_output(Terminal(), monkeypatch) as out:
        TABLES[command]()
    lines = _STYLE.sub("", out.getvalue()).splitlines()
    if command == "plan":  # what follows the table are sentences, which the terminal breaks
        lines = [line for line in lines if "│" in line]
    assert max(map(len, lines)) <= COLUMNS
    assert "…" not in out.getvalue()
    assert "0000-0000" not in out.getvalue(), "ids are shortened"
    if command in ("txn list", "txn list --topic", "preview"):
        assert "--json has them whole" in capsys.readouterr().err
    if command in ("topics", "topics describe", "txn list --topic", "state", "reset"):
        assert str(10**15) in out.getvalue(), "numbers are in one line"


@pytest.mark.parametrize("command", TABLES)
def test_a_piped_table_is_plain_and_a_line_each_row(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A colour that the environment asks for, as CI services do, would be in the cells.
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    with standard_output(io.StringIO(), monkeypatch) as out:
        TABLES[command]()
    text = out.getvalue()
    drawn = {each for each in text if "\u2500" <= each <= "\u257f"}
    assert ("\x1b" in text, drawn, "…" in text) == (False, set(), False)
    lines = text.splitlines()
    if command not in ("group describe", "metrics", "plan", "acls"):
        assert len(lines) == 1 + 2, "a heading and two rows"
    if command in ("topics", "txn list --topic", "state", "acls", "plan", "group describe"):
        assert any(TOPIC in line for line in lines), "names are whole"
    if command.startswith("txn list"):
        assert all(uuid(1) in line for line in lines[1:]), "a script needs the whole id"
    if command in ("txn list", "group describe"):
        assert any(all(name in line for name in MANY) for line in lines)


def test_state_of_generated_names_is_a_line_for_each_store_at_100_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("COLUMNS", str(COLUMNS)), ("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    stores = [
        "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000019",
        "KTABLE-SOURCE-0000000003-STATE-STORE",
        "KTABLE-SOURCE-0000000005-STATE-STORE",
    ]
    cells = {
        "task": "1_0",
        "kind": "key-value",
        "entries": 607,
        "bytes": 120_879,
        "changelog_offset": 728,
        "written": "2026-11-29T01:40:33.536Z",
        "used_by": "",
    }
    with standard_output(Terminal(), monkeypatch) as out:
        print_rows(
            ("task", "store", "kind", "entries", "bytes", "changelog_offset", "written", "used_by"),
            [cells | {"store": store} for store in stores],
            as_json=False,
        )
    rows = [line for line in out.getvalue().splitlines() if "1_0" in line]
    assert [row.split()[1] for row in rows] == [
        "KTABLE..PTION-19",
        "KTABLE-SOURCE-3",
        "KTABLE-SOURCE-5",
    ]
    assert all("01:40:33Z" in row for row in rows)
    assert "--json has them whole" in capsys.readouterr().err
