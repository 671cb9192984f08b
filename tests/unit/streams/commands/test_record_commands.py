"""Test `produce`, `consume`, `topics tail` and `changelog dump` on a Kafka in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from streams.common.topic_partitions import Partition
from streams.testing.cluster import InMemoryCluster, InMemoryTransaction
from tests.unit.streams.commands.in_memory_clients import (
    NOW_MS,
    InMemoryClients,
    InMemoryReader,
    use_cluster,
)

LINES = Partition("lines", 0)


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> InMemoryClients:
    cluster = InMemoryCluster()
    cluster.create_topic("lines", 1)
    cluster.create_topic("numbers", 2)
    return use_cluster(monkeypatch, cluster)


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli, arguments, input=typed)


def run_well(*arguments: str, typed: str = "") -> list[str]:
    """Return the lines on standard output of a command that must end with status 0."""
    result = run(*arguments, typed=typed)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def refusal(*arguments: str, typed: str = "") -> str:
    """Return the one line on standard error of a command that must end with status 2."""
    result = run(*arguments, typed=typed)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    (line,) = result.stderr.splitlines()
    return line


def test_records_are_produced_from_arguments_lines_and_files(
    clients: InMemoryClients, tmp_path: Path
) -> None:
    assert run("produce", "lines", "one", "two").stderr == "2 records to lines on memory:9092\n"
    (tmp_path / "records").write_text("b\r\n")
    run_well("produce", "lines", "--file", str(tmp_path / "records"), "--key", "k")
    options = ("--key-separator", ":", "--null", "-", "--header", "a=1", "--header", "b=2=3")
    said = run_well("produce", "lines", *options, "--json", typed="x:1:2\ny:-\n")
    assert said == ['{"topic": "lines", "records": 2}']
    messages = clients.cluster.logs[LINES].entries
    assert [(each.key(), each.value()) for each in messages] == [
        (None, b"one"), (None, b"two"), (b"k", b"b"), (b"x", b"1:2"), (b"y", None),
    ]  # fmt: skip
    assert messages[-1].headers() == [("a", b"1"), ("b", b"2=3")]
    assert messages[0].headers() is None


def test_each_line_may_begin_with_its_time(clients: InMemoryClients) -> None:
    typed = "1970-01-01T00:00:05Z|a:1\n77|b:2|3\n@0|c:-\n"
    options = ("--timestamp-separator", "|", "--key-separator", ":", "--null", "-")
    run_well("produce", "lines", *options, typed=typed)
    messages = clients.cluster.logs[LINES].entries
    assert [(each.key(), each.value(), each.timestamp()[1]) for each in messages] == [
        (b"a", b"1", 5_000), (b"b", b"2|3", 77), (b"c", None, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("time", "time_ms"),
    [
        ("0", 1),  # for 0 librdkafka would write the present time
        ("1970-01-01T00:00:00Z", 1),
        ("17000101", 17_000_101),
        ("@253402300800000", 253_402_300_800_000),
        ("9223372036854775", 9_223_372_036_854_775),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_a_time_is_written_as_it_is(clients: InMemoryClients, time: str, time_ms: int) -> None:
    run_well("produce", "lines", "a", "--timestamp", time)
    assert clients.cluster.logs[LINES].entries[-1].timestamp()[1] == time_ms


@pytest.mark.parametrize("time", ["@77", "77"])
def test_records_have_the_given_serdes_partition_and_time(
    clients: InMemoryClients, time: str
) -> None:
    serdes = ("--key-serde", "int32", "--value-serde", "json")
    place = ("--partition", "1", "--timestamp", time)
    run_well("produce", "numbers", '{"a": 1}', "--key", "5", *serdes, *place)
    (message,) = clients.cluster.logs[Partition("numbers", 1)].entries
    assert (message.key(), message.value()) == (b"\0\0\0\5", b'{"a":1}')
    assert message.timestamp()[1] == 77


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("line", "a"), "there is no topic 'line' on memory:9092: did you mean 'lines'?"),
        (("zzz", "a"), "millrace create-topics zzz` creates it"),
        (("a b", "a"), "'a b' is no name of a topic: it may have letters, digits"),
        (("", "a"), "'' is no name of a topic: it is text, and not empty"),
        (
            ("x" * 300, "a"),
            "is no name of a topic: it has 300 characters, and may have 249 at most",
        ),
        (("lines", "a", "--key-separator", ""), "--key-separator '' separates nothing"),
        (("lines", "a", "--timestamp-separator", ""), "--timestamp-separator '' separates nothing"),
        (("lines", "a", "--key-separator", ":"), "record 1: 'a' has no ':' between key and value"),
        (("lines", "1", "x", "--value-serde", "int64"), "record 2: value 'x' is no int64"),
        (("lines", "1", "--key", "x", "--key-serde", "int32"), "record 1: key 'x' is no int32"),
        (("lines", "1", "--value-serde", "int"), "--value-serde 'int' is no serde: give string"),
        (("lines", "1", "--partition", "1"), "--partition 1: topic 'lines' has partitions 0 to 0"),
        (("lines", "1", "--header", "a"), "--header 'a' is not NAME=VALUE"),
        (("lines", "1", "--timestamp", "soon"), "--timestamp 'soon' is no time: give 2026-"),
        (("lines", "1", "--timestamp", "1969-12-31T23:59Z"), "is before 1970: records have no"),
        (("lines", "1", "--timestamp", "0001-01-01T00:00Z"), "T00:00Z' is before 1970"),
        (("lines", "1", "--timestamp", "1" * 19), f"--timestamp '{'1' * 19}' is no time"),
        (("lines", "1", "--timestamp", "end"), "--timestamp 'end' is no time: give 2026-"),
        (("lines", "1:a", "--timestamp-separator", "|"), "1: '1:a' has no '|' between time and"),
        (("lines", "x|a", "--timestamp-separator", "|"), "record 1: its time 'x' is no time: give"),
        (("lines", "end|a", "--timestamp-separator", "|"), "record 1: its time 'end' is no time"),
        (
            ("lines", "1|a", "--timestamp-separator", "|", "--timestamp", "@7"),
            "with --timestamp, or in each line with --timestamp-separator",
        ),
        (("lines", "--file", "/nowhere"), "--file '/nowhere' can't be read"),
        (("lines", "1", "--file", "/nowhere"), "as arguments, or a file of them with --file"),
        (("lines", "1", "--key", "a", "--key-separator", ":"), "give the key with --key, or in"),
    ],
)
def test_what_can_t_be_produced_is_one_line(
    clients: InMemoryClients, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refusal("produce", *arguments)


def load(clients: InMemoryClients, *records: tuple[str | None, str | None, int]) -> None:
    for key, value, time_ms in records:
        encoded = [None if each is None else each.encode() for each in (key, value)]
        clients.cluster.append_record(LINES, encoded[0], encoded[1], time_ms, [("h", b"\xff")])


def test_records_are_consumed_as_text_or_json(clients: InMemoryClients) -> None:
    load(clients, ("k", "one", 10), (None, "two", 20), ("k", None, 1_500))
    assert run_well("consume", "lines") == ["k\tone", "null\ttwo", "k\tnull"]
    assert run_well("consume", "lines", "--key-separator", "=", "-n", "1") == ["k=one"]
    assert run_well("consume", "lines", "--from", "2", "--metadata") == [
        "0@2\t1970-01-01T00:00:01.500Z\tk\tnull\th=0xff"
    ]
    (line,) = run_well("consume", "lines", "--from", "@20", "-n", "1", "--json")
    assert json.loads(line) == {
        "topic": "lines", "partition": 0, "offset": 1, "timestamp_ms": 20,
        "key": None, "value": "two", "headers": [["h", "0xff"]],
    }  # fmt: skip
    assert run_well("consume", "lines", "--from", "end", "--until-end") == []
    assert all(reader.is_closed for reader in clients.readers)


def test_a_header_of_several_lines_is_text_in_one_line(clients: InMemoryClients) -> None:
    run_well("produce", "lines", "a", "--header", "stack=one\n\ttwo")
    (line,) = run_well("consume", "lines", "--metadata")
    assert line.endswith("a\tstack=one\\n\\ttwo")
    (line,) = run_well("consume", "lines", "--json")
    assert json.loads(line)["headers"] == [["stack", "one\n\ttwo"]]


def test_records_of_open_and_aborted_transactions_are_not_shown(clients: InMemoryClients) -> None:
    aborted, opened = InMemoryTransaction(), InMemoryTransaction()
    load(clients, ("k", "one", 1))
    clients.cluster.append_record(LINES, b"k", b"aborted", 2, None, aborted)
    clients.cluster.end_transaction(aborted, committed=False)
    load(clients, ("k", "two", 3))
    clients.cluster.append_record(LINES, b"k", b"open", 4, None, opened)
    assert run_well("consume", "lines", "--until-end") == ["k\tone", "k\ttwo"]
    assert run_well("topics", "tail", "lines", "-n", "2") == ["k\tone", "k\ttwo"]


def test_the_newest_records_are_those_of_all_partitions_by_time(clients: InMemoryClients) -> None:
    for number, times in ((0, (1, 5, 9)), (1, (2, 7, 8))):
        for time_ms in times:
            partition = Partition("numbers", number)
            clients.cluster.append_record(partition, None, str(time_ms).encode(), time_ms)
    assert run_well("topics", "tail", "numbers", "-n", "4") == [
        "null\t5", "null\t7", "null\t8", "null\t9",
    ]  # fmt: skip


def test_ctrl_c_ends_a_command_that_waits_for_records_well(
    clients: InMemoryClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    class InterruptedReader(InMemoryReader):
        """Reads what is there, and is interrupted while it waits for more."""

        def read_records(self, *arguments: Any) -> Iterator[Any]:
            yield from super().read_records(*arguments)
            if len(arguments) == 1 or arguments[1] is None:
                raise KeyboardInterrupt

    load(clients, ("k", "one", 10))
    reader = InterruptedReader(clients.cluster)
    monkeypatch.setattr(clients, "create_reader", lambda **_: reader)
    assert run_well("consume", "lines") == ["k\tone"]
    assert run_well("topics", "tail", "lines", "--follow") == ["k\tone"]
    assert reader.is_closed


def test_what_a_serde_refuses_is_one_line_that_names_the_record(clients: InMemoryClients) -> None:
    load(clients, ("k", "one", 10))
    message = refusal("consume", "lines", "--value-serde", "int64")
    assert "the value of lines[0] at offset 0 is no int64 (needs 8 bytes, got 3)" in message
    assert "it is one; give another serde with --value-serde" in message


def test_times_without_clock_come_from_the_producer(clients: InMemoryClients) -> None:
    run_well("produce", "lines", "one")
    assert clients.cluster.logs[LINES].entries[0].timestamp()[1] == NOW_MS


def load_changelog(clients: InMemoryClients) -> None:
    clients.cluster.create_topic("words-counts-changelog", 1)
    for key, number in (("a", 1), ("b", 1), ("a", 2), ("b", None)):
        value = None if number is None else number.to_bytes(8, "big")
        partition = Partition("words-counts-changelog", 0)
        clients.cluster.append_record(partition, key.encode(), value, 5)


def test_a_changelog_is_dumped_with_every_change_or_the_latest(clients: InMemoryClients) -> None:
    load_changelog(clients)
    command = ("changelog", "dump", "words", "counts", "--value-serde", "int64")
    assert run_well(*command) == ["a\t1", "b\t1", "a\t2", "b\tnull"]
    assert run_well(*command, "--latest") == ["a\t2"]
    (line,) = run_well(*command, "--latest", "--json")
    assert json.loads(line) == {
        "partition": 0, "offset": 2, "key": "a", "timestamp_ms": 5, "value": 2,
    }  # fmt: skip
    message = refusal(*command, "--kind", "window")
    assert "offset 0 is not of a window store (a key of 1 bytes has no window" in message


def test_a_changelog_is_read_by_the_serdes_of_the_app(
    clients: InMemoryClients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "changelog_app.py").write_text(
        "from streams import App, serdes\napp = App('words')\n"
        "app.stream('lines', key=serdes.string, value=serdes.string)"
        ".group_by_key().count(store='counts').to_stream().to('numbers')\n"
    )
    load_changelog(clients)
    command = ("changelog", "dump", "changelog_app:app")
    assert run_well(*command, "counts", "--latest", "-m") == [
        "0\t2\t1970-01-01T00:00:00.005Z\ta\t2"
    ]
    assert "'words' has no store 'count': its stores are counts" in refusal(*command, "count")
    assert "leave --kind out" in refusal(*command, "counts", "--kind", "session")
