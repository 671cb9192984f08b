"""Test what daily commands share: positions, serdes by name, output, and the plan of a reset."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from state.windowed import Windowed
from streams import serdes
from streams.commands.internal_topics import find_internal_topics
from streams.commands.named_serdes import require_named_serde
from streams.commands.offset_positions import parse_position, skip_until_time
from streams.commands.output import format_cell, format_value, print_rows, substitute_for_json
from streams.commands.records import format_time
from streams.errors import ConfigError

LOCAL = datetime.fromisoformat("2026-11-25T10:00")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("beginning", ("beginning", 0)),
        ("earliest", ("beginning", 0)),
        ("end", ("end", 0)),
        ("latest", ("end", 0)),
        ("120", ("offset", 120)),
        ("@1764064800000", ("time", 1_764_064_800_000)),
        ("30s", ("time", 9_970_000)),
        ("2h", ("time", 2_800_000)),
        ("7d", ("time", 0)),
        ("2026-11-25T10:00+00:00", ("time", 1_795_600_800_000)),
        ("2026-11-25T10:00", ("time", int(LOCAL.timestamp() * 1_000))),
    ],
)
def test_a_position_is_parsed(text: str, position: tuple[str, int]) -> None:
    assert parse_position(text, "--from", now_ms=10_000_000) == position


@dataclass
class TimedMessage:
    """Stands in for a message of librdkafka's consumer, of topic t."""

    number: int
    time_ms: int

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self.number

    def timestamp(self) -> tuple[int, int]:
        return 1, self.time_ms


def test_a_time_begins_with_the_first_record_of_each_partition_that_is_as_late() -> None:
    given = [(0, 5), (1, 20), (0, 10), (1, 3), (0, 2)]
    shown = skip_until_time((TimedMessage(*each) for each in given), 10)
    assert [(each.number, each.time_ms) for each in shown] == [(1, 20), (0, 10), (1, 3), (0, 2)]


@pytest.mark.parametrize("text", ["", "-1", "tomorrow", "@x", "12w", "2026-13-01", "²"])
def test_what_is_no_position_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--from .* is no position: give beginning, end, an"):
        parse_position(text, "--from")


@pytest.mark.parametrize(
    ("name", "typed", "data", "shown"),
    [
        ("string", "ä", "ä".encode(), "ä"),
        ("bytes", "ab", b"ab", "ab"),
        ("bytes", "0x00ff", b"\0\xff", "0x00ff"),
        ("int32", "-1", b"\xff\xff\xff\xff", -1),
        ("int64", "5", b"\0\0\0\0\0\0\0\5", 5),
        ("float64", "1.5", serdes.float64.serialize(1.5), 1.5),
        ("json", '{"a": [1]}', b'{"a":[1]}', {"a": [1]}),
    ],
)
def test_a_serde_by_its_name(name: str, typed: str, data: bytes, shown: Any) -> None:
    serde = require_named_serde(name, "--value-serde", "topic", "value")
    assert serde.parse(typed) == data
    found = serde.show(data)
    assert (format_value(found) if name == "bytes" else found) == shown


@pytest.mark.parametrize(
    ("data", "in_text", "in_json"),
    [
        (b"a\n\tb\r", r"a\n\tb\r", "a\n\tb\r"),
        (b"a\0b", "0x610062", "0x610062"),
        (b"\xff\n", "0xff0a", "0xff0a"),
    ],
)
def test_bytes_of_several_lines_are_text(data: bytes, in_text: str, in_json: str) -> None:
    assert (
        format_value(require_named_serde("bytes", "--value-serde", "topic", "value").show(data))
        == in_text
    )
    assert substitute_for_json(data) == in_json


def test_windowed_keys_are_read_and_not_typed() -> None:
    data = serdes.session_windowed(serdes.string).serialize(Windowed("k", 1, 2))
    serde = require_named_serde("session_windowed(string)", "--key-serde", "topic", "key")
    assert str(serde.show(data)) == "[k@1/2]"
    with pytest.raises(ValueError, match="can be read, and not typed"):
        serde.parse("k")


@pytest.mark.parametrize(
    ("name", "text", "end_ms"),
    [
        ("windowed(string)", "[k@1/?]", None),
        ("windowed(string, 60)", "[k@1/61]", 61),
        ("windowed(string,60)", "[k@1/61]", 61),
    ],
)
def test_the_end_of_a_window_is_told_by_its_size(name: str, text: str, end_ms: int | None) -> None:
    data = serdes.windowed(serdes.string).serialize(Windowed("k", 1, 2))
    shown = require_named_serde(name, "--key-serde", "topic", "key").show(data)
    assert format_value(shown) == text
    assert substitute_for_json(shown) == {"key": "k", "start_ms": 1, "end_ms": end_ms}


def test_a_window_of_no_size_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--key-serde 'windowed\(string, 0\)': .*above 0 ms"):
        require_named_serde("windowed(string, 0)", "--key-serde", "topic", "key")


def test_keys_in_windows_are_shown_as_those_of_stores() -> None:
    assert format_value(Windowed({"id": 7}, 1, 2)) == '[{"id": 7}@1/2]'


def test_a_serde_of_a_module_is_imported_and_anything_else_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_serdes.py").write_text(
        "from streams import serdes\n"
        "upper = serdes.of(lambda t: t.upper().encode(), lambda d: d.decode())\nnumber = 1\n"
    )
    serde = require_named_serde("own_serdes:upper", "--key-serde", "topic", "key")
    assert serde.parse("a") == b"A"
    with pytest.raises(ValueError, match="the name 'b' is there twice"):
        serde.parse('{"b": 1, "b": 2}')
    for name, message in (
        ("own_serdes:number", "'number' in 'own_serdes' is no serde"),
        ("missing_serdes:x", "there is no module 'missing_serdes'"),
        ("strin", "is no serde: give string, bytes"),
    ):
        with pytest.raises(ConfigError, match=message):
            require_named_serde(name, "--key-serde", "topic", "key")


@dataclass
class Order:
    """Stands in for a value of an application."""

    id: int
    raw: bytes


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b"),
        (b"a", "a"),
        (b"a\n", r"a\n"),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (Windowed("k", 1, 2), "[k@1/2]"),
        (Order(1, b"\0"), '{"id": 1, "raw": "0x00"}'),
        ({"ä": [1, None]}, '{"ä": [1, null]}'),
    ],
)
def test_a_value_is_shown(value: Any, text: str) -> None:
    assert format_value(value) == text


def test_rows_are_a_table_or_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"topic": "[red]a", "in_sync": [1, 2], "end": 10, "more": b"x"}]
    print_rows(("topic", "in_sync", "end"), rows, as_json=False)
    printed = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert printed[0] == ["topic", "in", "sync", "end"]
    assert printed[-1] == ["[red]a", "1,", "2", "10"]
    print_rows(("topic",), rows, as_json=True)
    expected = '{"topic": "[red]a", "in_sync": [1, 2], "end": 10, "more": "x"}\n'
    assert capsys.readouterr().out == expected
    assert format_cell({"a": None}) == "a="


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [(-1, "-"), (1_500, "1970-01-01T00:00:01.500Z"), (2**62, f"@{2**62}")],
)
def test_a_time_is_shown_in_utc(time_ms: int, text: str) -> None:
    assert format_time(time_ms) == text


def test_internal_topics_are_those_of_the_application_and_of_no_other() -> None:
    own = [
        "word-counts-changelog",
        "word-by-word-repartition",
        "word-j-subscription-registration-topic",
        "word-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
    ]
    others = ["word-ledger", "word-out", "words-a-changelog", "changelog", "word-count-a-changelog"]
    found = find_internal_topics("word", [*own, *others], ["word", "word-count"])
    assert sorted([*found.own, *found.undecided]) == sorted(own)
    assert found.undecided == ["word-by-word-repartition"], "a longer application id fits it alone"
    assert "word-count-a-changelog" in find_internal_topics("word", others, ["word"]).undecided
