"""Test that a join is refused when it is described if keys of its sides can never match."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, TopologyTestDriver, serdes, windows
from streams.serdes import Serde
from tests.unit.streams.dsl.mistakes import Table, lines, provoke_refusal, rows


def pair(value: Any, other: Any) -> Any:
    return value, other


def numbered(app: App, key: Serde[Any] = serdes.int64) -> Any:
    return app.stream("numbered", key=key, value=serdes.string)


def numbered_rows(app: App) -> Any:
    return app.table("numbered", key=serdes.int64, value=serdes.string)


DIFFERENT: Table = {
    "two streams": (
        lambda app: lines(app).join(numbered(app), pair, within=5, name="meet"),
        (
            "step 'meet' joins by key",
            "of the one side are str (serde 'string'), those of the other a number (serde 'int64')",
            "select_key(...)",
        ),
    ),
    "a stream and a table": (
        lambda app: lines(app).left_join(numbered_rows(app), pair, name="meet"),
        ("str (serde 'string'), those of the other a number (serde 'int64')",),
    ),
    "two tables": (
        lambda app: rows(app).outer_join(numbered_rows(app), pair, name="meet"),
        ("str (serde 'string'), those of the other a number (serde 'int64')",),
    ),
    "a stream and a table of windows": (
        lambda app: lines(app).join(
            lines(app).group_by_key().windowed_by(windows.tumbling(5)).count(), pair, name="meet"
        ),
        ("those of the other Windowed (serde 'windowed(string",),
    ),
}


@pytest.mark.parametrize(("mistake", "parts"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_join_of_keys_that_never_match_is_refused(mistake: Any, parts: tuple[str, ...]) -> None:
    message = provoke_refusal(mistake)
    for part in parts:
        assert part in message


CUSTOM = serdes.of(str.encode, bytes.decode)


@pytest.mark.parametrize("key", [serdes.json, CUSTOM, serdes.int32], ids=["json", "own", "int32"])
def test_what_may_match_is_not_refused(key: Serde[Any]) -> None:
    app = App("a")
    other = lines(app) if key is not serdes.int32 else app.stream("in", key=serdes.int64, value=key)
    other.join(numbered(app, key), pair, within=5)
    other.join(app.table("rows", key=key, value=serdes.string), pair)
    app.topology()


def test_a_stream_that_takes_the_other_sides_key_is_joined() -> None:
    app = App("a")
    chosen = lines(app).select_key(lambda _, value: int(value), key=serdes.int64)
    chosen.join(numbered_rows(app), pair).to("out", value=serdes.json(tuple[str, str]))
    with TopologyTestDriver(app, stores="memory") as driver:
        driver.topic("numbered").pipe(7, "seven")
        driver.topic("lines").pipe("k", "7")
        assert driver.topic("out").read().value == ("7", "seven")
