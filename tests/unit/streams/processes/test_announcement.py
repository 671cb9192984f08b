"""Test what a worker says of itself at its start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams import App, serdes
from streams.processes.announcement import announce_start
from streams.settings.config import load_config

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def announce(caplog: pytest.LogCaptureFixture, app: App, **settings: Any) -> str:
    caplog.set_level("INFO")
    announce_start(
        app.topology(),
        load_config(**settings),
        bootstrap_servers="127.0.0.1:9092",
        directory=Path("/state/words"),
        ports={"health_port": 8081},
        worker_number=1,
        worker_count=2,
    )
    return caplog.messages[0]


def build_app() -> App:
    app = App("words")
    lines = app.stream("lines", **TEXT)
    app.global_table("rates", **TEXT)
    lines.group_by(lambda key, value: value, key=serdes.string).count().to_stream().to("counts")
    return app


def test_a_worker_says_at_its_start_what_runs_where(caplog: pytest.LogCaptureFixture) -> None:
    said = announce(caplog, build_app())
    for part in (
        "millrace 0.1.0 runs 'words' on 127.0.0.1:9092 (the embedded broker); ",
        "exactly_once_v2; reads lines, rates; writes counts; ",
        "worker 2 of 2; threads 1; state in /state/words; http://127.0.0.1:8081/health",
    ):
        assert part in said
    assert "repartition" not in said
    fields = vars(caplog.records[0])
    assert fields["application_id"] == "words"
    assert fields["reads"] == ["lines", "rates"]
    assert fields["health_port"] == 8081


def test_an_address_of_kafka_and_of_version_6_and_topics_by_a_function_are_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = build_app()
    app.stream("lines", **TEXT).to(lambda record: record.key)
    said = announce(caplog, app, bootstrap_servers="127.0.0.1:9092", health_host="::1")
    assert "on 127.0.0.1:9092; " in said
    assert "writes counts, topics by a function" in said
    assert "http://[::1]:8081/health" in said
