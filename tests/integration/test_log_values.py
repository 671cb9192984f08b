"""Test that a running application's messages show of a record's values what it allows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streams import App, StreamsError, serdes
from tests.brokers import Broker

pytestmark = pytest.mark.sampled(1, by="broker")

SECRET = "4711-2222"


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, "invalid literal for int() with base 10: <str of 9 characters>"),
        ({"log_values": "none"}, "ValueError in <lambda>"),
        ({"log_values": "full"}, f"invalid literal for int() with base 10: '{SECRET}'"),
    ],
    ids=["types", "none", "full"],
)
@pytest.mark.parametrize("handler", ["fail", "skip"])
def test_a_failed_record_is_named_and_its_values_are_shown_as_far_as_allowed(
    broker: Broker,
    unique: Callable[[str], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
    shown: str,
    handler: str,
) -> None:
    caplog.set_level(logging.INFO)
    name = unique("shown")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(name, SECRET.encode(), b"key")
    producer.produce(name, b"1", b"key")
    producer.flush(10)
    app = App(
        name,
        bootstrap_servers=broker.bootstrap_servers,
        state_dir=tmp_path,
        processing_handler=handler,
        **settings,
    )
    done: list[int] = []
    numbers = app.stream(name, key=serdes.string, value=serdes.string)
    numbers.map_values(lambda value: int(value)).for_each(lambda key, value: done.append(value))
    running = app.start()
    said = ""
    try:
        running.wait_for("ERROR" if handler == "fail" else "RUNNING")
        while handler == "skip" and not done:
            running.wait_for("RUNNING")
    finally:
        try:
            running.close()
        except StreamsError as error:
            said = str(error)
    assert (said == "") is (handler == "skip")
    said += caplog.text
    assert f"{name}[0]@0" in said
    assert (shown if handler == "fail" else shown.partition(" in <lambda>")[0]) in said
    assert (SECRET in said) is (settings.get("log_values") == "full")
