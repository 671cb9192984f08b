"""Test that `consume` prints the values that `produce` was given, or that either refuses them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from streams.commands.named_serdes import parse_bytes
from streams.commands.output import format_value, print_json_line, to_text_or_hex
from streams.commands.root import cli
from streams.testing.cluster import InMemoryCluster
from tests import edge_values as edges
from tests.unit.properties import examples
from tests.unit.streams.commands.in_memory_clients import use_cluster

TYPED: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], str]]] = {
    "string": (edges.texts.filter(lambda text: "\n" not in text and text[:1] != "\ufeff"), str),
    "bytes": (edges.binaries, lambda data: f"0x{data.hex()}"),
    "int32": (edges.int32s, str),
    "int64": (edges.int64s, str),
    "float64": (edges.any_floats, repr),
}
"""What each serde takes, and how it is typed in a line."""
AS_JSON = ("--value-serde", "json")


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli, arguments, input=typed)


@examples(50)
@given(edges.PLAIN)
def test_json_is_consumed_as_it_was_produced(value: Any) -> None:
    cluster = InMemoryCluster()
    cluster.create_topic("values", 1)
    with pytest.MonkeyPatch.context() as patch:
        use_cluster(patch, cluster)
        written = run("produce", "values", *AS_JSON, typed=json.dumps(value) + "\n")
        assert written.exit_code == 0, written.output
        read = run("consume", "values", "--from", "earliest", "-n", "1", *AS_JSON, "--json")
    assert edges.are_same(json.loads(read.stdout)["value"], value)


@pytest.mark.parametrize("serde", TYPED)
@given(data=st.data())
@examples(5)
def test_what_is_typed_is_consumed_and_can_be_typed_again(serde: str, data: st.DataObject) -> None:
    """Produce as many lines as there are values in one run, and again what was printed."""
    values, to_text = TYPED[serde]
    written = data.draw(st.lists(values, min_size=1, max_size=100))
    # A CR at the end of a line belongs to the line's end.
    written = [each for each in written if not to_text(each).endswith("\r")]
    named = ("--value-serde", serde)
    typed = [*map(to_text, written)]
    for _ in range(2 if written else 0):
        cluster = InMemoryCluster()
        cluster.create_topic("values", 1)
        with pytest.MonkeyPatch.context() as patch:
            use_cluster(patch, cluster)
            done = run("produce", "values", *named, typed="\n".join(typed) + "\n")
            assert done.exit_code == 0, done.output
            read = run("consume", "values", "-n", str(len(written)), *named, "--json")
        lines = read.stdout.split("\n")[:-1]
        found = [json.loads(line, parse_constant=pytest.fail)["value"] for line in lines]
        if serde == "float64":
            found = [*map(float, found)]  # NaN and the infinities are texts
        typed = found if serde == "bytes" else [*map(to_text, found)]
        if serde == "bytes":
            found = [parse_bytes(text) for text in found]
            in_lines = zip(typed, map(to_text, found), strict=True)
            # A line end is no part of a line.
            typed = [digits if {*"\n\r"} & {*text} else text for text, digits in in_lines]
        assert edges.are_same(found, written)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("1e400", "1e400 is larger than any float64"),
        ("-1.8e308", "is larger than any float64"),
        ("9007199254740993", "float, or int that equals one, got int: 9007199254740993"),
        ("1" * 400, "float, or int that equals one"),
        ("0x10", "could not convert"),
        ("1_000", "'1_000' is no number"),
        ("\u0663", "'\u0663' is no number"),
    ],
)
def test_a_number_that_no_float64_is_near_is_not_produced(
    monkeypatch: pytest.MonkeyPatch, typed: str, reason: str
) -> None:
    cluster = InMemoryCluster()
    cluster.create_topic("values", 1)
    use_cluster(monkeypatch, cluster)
    result = run("produce", "values", "--value-serde", "float64", typed=typed)
    assert result.exit_code == 2
    assert reason in result.stderr


@pytest.mark.parametrize("typed", ["1_000", "\u0663", "1.0", "0x10", "", "x" * 10_000])
def test_what_only_python_takes_for_a_whole_number_is_not_produced(
    monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    cluster = InMemoryCluster()
    cluster.create_topic("values", 1)
    use_cluster(monkeypatch, cluster)
    result = run("produce", "values", "--value-serde", "int64", typed=f"{typed}\n")
    assert result.exit_code == 2
    assert f"{typed!r:.100} is no whole number" in result.stderr
    assert len(result.stderr) < 600


@pytest.mark.parametrize("data", [b"0x41", b"0x", b"0X41", b"A", b"", b"\xff", b"\0", b"a\r\n"])
def test_bytes_are_printed_so_that_they_can_be_typed(data: bytes) -> None:
    assert parse_bytes(to_text_or_hex(data)) == data


@dataclass
class Reading:
    at: float
    of: set[Any]


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "shown", "as_json"),
    [
        ("a\ud800", r"a\ud800", r"a\ud800"),
        ({"a": "\udfff"}, r'{"a": "\udfff"}', {"a": r"\udfff"}),
        ({("a", 1): 2, None: 3}, '{"[\\"a\\", 1]": 2, "null": 3}', {'["a", 1]': 2, "null": 3}),
        ([nan, {"a": -inf}], '["NaN", {"a": "-Infinity"}]', ["NaN", {"a": "-Infinity"}]),
        (Reading(inf, {(1,)}), '{"at": "Infinity", "of": [[1]]}', {"at": "Infinity", "of": [[1]]}),
        (CIRCLE, '["[[...]]"]', ["[[...]]"]),
    ],
)
def test_what_cannot_be_printed_as_it_is_ends_no_command(
    value: Any, shown: str, as_json: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert format_value(value) == shown
    print_json_line({"value": value})
    printed = capsys.readouterr().out
    strict = json.loads(printed.replace(r"\u", r"\\u"), parse_constant=pytest.fail)
    assert strict["value"] == as_json


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("NaN", "value: JSON has no nan"),
        ('{"a": [1e400]}', "value.a[0]: JSON has no inf"),
        ('{"a": "\\ud800"}', "value.a: UTF-8 has no lone surrogates"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the name 'c' is there twice"),
    ],
)
def test_json_that_would_come_back_as_another_value_is_not_produced(
    monkeypatch: pytest.MonkeyPatch, typed: str, reason: str
) -> None:
    cluster = InMemoryCluster()
    cluster.create_topic("values", 1)
    use_cluster(monkeypatch, cluster)
    result = run("produce", "values", *AS_JSON, typed=typed)
    assert result.exit_code == 2
    assert reason in result.stderr
