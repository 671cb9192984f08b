"""Test `millrace reconcile` of an application with dead letters, on its embedded broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

from streams.app import import_app
from streams.commands.root import cli
from streams.errors import ConfigError
from streams.processes.embedded import find_or_start_bootstrap_servers
from streams.spark import read_cut
from tests.json_outputs import check_json_output
from tests.processes import HANG_LIMIT_S, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION = """
from millrace import App, dead_letter, serdes


app = App(
    "counts",
    deserialization_handler=dead_letter("unreadable"),
    processing_handler=lambda error: "skip",
    commit_interval_ms=20,
)
for topic in ("orders", "returns"):
    (
        app.stream(topic, key=serdes.string, value=serdes.int64)
        .group_by_key()
        .count(store=f"{topic}-count")
    )
"""
WITHOUT_A_CHANGELOG = """
from millrace import App, Store, serdes

app = App("counts")
app.stream("returns", key=serdes.string, value=serdes.int64).group_by_key().count(
    store=Store.in_memory("scratch", logged=False)
)
"""
INPUTS = ("orders", "returns")
READABLE, UNREADABLE = (7).to_bytes(8, "big"), b"seven"


def millrace(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)])


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run the application to the end of its inputs; its embedded broker goes on."""
    state = tmp_path / "elsewhere"
    (tmp_path / "counts_of_orders.py").write_text(APPLICATION)
    (tmp_path / "scratch_counts.py").write_text(WITHOUT_A_CHANGELOG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    app = import_app("counts_of_orders:app")
    app.configure(None, state_dir=state)
    servers = find_or_start_bootstrap_servers(app.config)
    try:
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(topic, 2, 1) for topic in (*INPUTS, "unreadable")]
        for created in admin.create_topics(topics).values():
            created.result(HANG_LIMIT_S)
        producer = Producer({"bootstrap.servers": servers})
        for topic, values in {
            "orders": [READABLE, UNREADABLE, UNREADABLE],
            "returns": [UNREADABLE, READABLE],
        }.items():
            for value in values:
                producer.produce(topic, value, b"ann", 1)
        assert producer.flush(HANG_LIMIT_S) == 0

        def is_drained() -> bool:
            try:
                return sum(read_cut(app).offsets.values()) == 5
            except ConfigError:  # nothing is committed yet
                return False

        with app.start():
            wait_until(is_drained, what="all inputs to be read")
        yield state
    finally:
        stopped = millrace("broker", "stop", "--state-dir", state)
        assert stopped.exit_code == 0, stopped.output


def test_dead_letters_are_told_by_the_topic_of_their_records(
    spark: SparkSession, state: Path
) -> None:
    said = millrace("reconcile", "counts_of_orders:app", "--state-dir", state)
    assert said.exit_code == 0, said.output
    assert (
        "  dead letters in unreadable: 3 (2 of orders, 1 of returns); they are in no account\n"
        "  dead letters are not counted: processing_handler is a function, which may choose any "
        "topic\n" in said.stdout
    )
    done = millrace("reconcile", "counts_of_orders:app", "--state-dir", state, "--json")
    printed = json.loads(done.stdout)
    check_json_output("reconcile", printed)
    assert printed["error"] is None
    assert [(each["topic"], each["counts_by_source"]) for each in printed["dead_letters"]] == [
        ("unreadable", {"orders": 2, "returns": 1}),
        (None, None),
    ]

    asked = ("scratch_counts:app", "--account", "scratch", "--json")
    nothing = millrace("reconcile", *asked, "--state-dir", state)
    assert nothing.exit_code == 2, nothing.output
    printed = json.loads(nothing.stdout)
    check_json_output("reconcile", printed)
    assert (printed["status"], printed["accounts"]) == (2, [])
    assert printed["error"].startswith("nothing could be checked: scratch: ")
    assert [each["account"] for each in printed["unchecked"]] == ["scratch"]
    assert nothing.stderr.splitlines()[-1] == f"millrace: {printed['error']}"
