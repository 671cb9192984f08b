"""Test what `produce` says of the records that were written when it ends early."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from typer.testing import CliRunner

from streams.commands.root import cli
from streams.common.topic_partitions import Partition
from streams.testing.cluster import InMemoryCluster
from tests.unit.streams.commands.in_memory_clients import (
    CommandProducer,
    InMemoryClients,
    use_cluster,
)

LINES = Partition("lines", 0)


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> InMemoryClients:
    cluster = InMemoryCluster()
    cluster.create_topic("lines", 1)
    return use_cluster(monkeypatch, cluster)


def refusal(*arguments: str, typed: bytes = b"") -> str:
    """Return the one line on standard error of a command that must end with status 2."""
    result = CliRunner().invoke(cli, arguments, input=typed)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    (line,) = result.stderr.splitlines()
    return line


def written(clients: InMemoryClients) -> list[bytes | None]:
    return [each.value() for each in clients.cluster.logs[LINES].read_committed(0)]


def fail(clients: InMemoryClients, **errors: int) -> None:
    """Let the records with these indexes fail with Kafka's errors of these names."""

    def alter(producer: CommandProducer) -> None:
        producer.failures = {
            index: KafkaError(getattr(KafkaError, name)) for name, index in errors.items()
        }

    clients.alter_producer = alter


def test_a_bad_line_is_named_with_what_was_written_before_and_where_to_go_on(
    clients: InMemoryClients, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    good = b"".join(b"k%d:v%d\n" % (n, n) for n in range(12_345))
    file.write_bytes(good + b"oops\nk:last\n")
    command = ("produce", "lines", "--key-separator", ":")
    for said in (refusal(*command, "--file", str(file)), refusal(*command, typed=good + b"oops")):
        assert said.endswith(
            "line 12346: 'oops' has no ':' between key and value; 12345 records were written, the "
            "next is line 12346: go on with --from-line 12346"
        )
    assert len(written(clients)) == 2 * 12_345
    file.write_bytes(good + b"k:mended\nk:last\n")
    result = CliRunner().invoke(cli, [*command, "--file", str(file), "--from-line", "12346"])
    assert result.exit_code == 0
    assert written(clients)[2 * 12_345 :] == [b"mended", b"last"]


def test_the_number_of_a_line_counts_from_the_beginning_of_the_file(
    clients: InMemoryClients,
) -> None:
    said = refusal("produce", "lines", "--from-line", "3", typed=b"a\nb\nc\nd\n\xff\n")
    assert "line 5 is no utf-8: b'\\xff' at byte 1" in said
    assert said.endswith("2 records were written, the next is line 5: go on with --from-line 5")
    assert written(clients) == [b"c", b"d"]


def test_nothing_was_written_before_a_bad_first_line(clients: InMemoryClients) -> None:
    assert refusal("produce", "lines", typed=b"\xff\n").endswith("; nothing was written")


def test_records_that_are_given_as_arguments_have_no_lines(clients: InMemoryClients) -> None:
    said = refusal("produce", "lines", "1", "2", "x", "--value-serde", "int32")
    assert "record 3: value 'x' is no int32" in said
    assert said.endswith("; 2 records were written, the next is record 3")
    for option in (("--from-line", "2"), ("--encoding", "latin-1")):
        assert "for the lines of a file or of standard" in refusal("produce", "lines", "1", *option)


def test_a_record_that_the_client_refuses_is_named(clients: InMemoryClients) -> None:
    said = refusal("produce", "lines", typed=b"a\n" + b"x" * 1_000_001 + b"\nc\n")
    assert "line 2: produce: " in said
    assert "MSG_SIZE_TOO_LARGE" in said
    assert "1 record was written, the next is line 2: go on with --from-line 2" in said
    assert said.endswith("(see MR-071)")


def test_the_records_that_are_counted_end_before_the_first_that_was_not_acknowledged(
    clients: InMemoryClients,
) -> None:
    fail(clients, INVALID_RECORD=3, TOPIC_AUTHORIZATION_FAILED=5)
    said = refusal("produce", "lines", typed=b"0\n1\n2\n3\n4\n5\n6\n")
    assert "line 4: Broker: " in said
    assert "; 1 not delivered: Broker: Topic authorization failed; " in said
    assert said.endswith(
        "3 records were written, the next is line 4: go on with --from-line 4; "
        "of those after it 2 records were written already"
    )
    assert written(clients) == [b"0", b"1", b"2", b"4", b"6"]


def test_records_without_an_answer_may_be_written_and_are_not_counted(
    clients: InMemoryClients,
) -> None:
    def alter(producer: CommandProducer) -> None:
        producer.unanswered_from = 2

    clients.alter_producer = alter
    assert refusal("produce", "lines", typed=b"0\n1\n2\n3\n4\n").endswith(
        "3 not delivered: no answer; 2 records were written, the next is line 3: go on with "
        "--from-line 3; 3 of those that were not acknowledged may be written as well (see MR-013)"
    )
    # A bad line does not hide that the records before it were not acknowledged.
    said = refusal("produce", "lines", "--key-separator", ":", typed=b":0\n:1\n:2\noops\n")
    assert "line 4: 'oops' has no ':'" in said
    assert "2 records were written, the next is line 3: go on with --from-line 3; 1 of" in said


@pytest.mark.parametrize("code", ["INVALID_RECORD", "INVALID_TIMESTAMP"])
def test_records_too_far_ahead_of_now_are_told_with_their_largest_timestamp(
    clients: InMemoryClients, code: str
) -> None:
    fail(clients, **{code: 0})
    options = ("produce", "lines", "--timestamp-separator", " ", "9900000000000 a", "@5 b")
    said = refusal(*options)
    assert "record 1: its time, 2283-09-20T08:00:00.000Z (@9900000000000), is" in said
    assert "message.timestamp.after.max.ms" in said


@pytest.mark.parametrize(
    ("code", "time"),
    [("INVALID_RECORD", "5"), ("_MSG_TIMED_OUT", "9900000000000")],
)
def test_records_that_fail_otherwise_are_not_said_to_be_ahead_of_now(
    clients: InMemoryClients, code: str, time: str
) -> None:
    fail(clients, **{code: 0})
    said = refusal("produce", "lines", "a", "--timestamp", time)
    assert ("record 1: Broker: " if code == "INVALID_RECORD" else "1 not delivered: ") in said
    assert "ahead of now" not in said


SETTINGS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1000",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": "3600000",
}
TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)


def refuse(clients: InMemoryClients, *, batch_records: int = 10_000, **values: KafkaError) -> None:
    """Let a broker refuse records with these values, each with its whole batch."""

    def alter(producer: CommandProducer) -> None:
        producer.refused = {value.encode(): error for value, error in values.items()}
        producer.batch_records = batch_records

    clients.alter_producer = alter


@pytest.mark.parametrize("options", [(), ("--transaction",)])
@pytest.mark.parametrize(
    ("settings", "line", "reason"),
    [
        ({}, b"k:" + b"x" * 1000, "has 1071 bytes with its headers and its batch"),
        ({}, b"k:" + b"x" * 930, "has 1001 bytes with"),
        ({"cleanup.policy": "compact,delete"}, b"NULL", "has no key, which topic 'lines' needs"),
    ],
)
def test_a_record_that_the_settings_of_its_topic_exclude_is_named_before_it_is_sent(
    clients: InMemoryClients,
    options: tuple[str, ...],
    settings: dict[str, str],
    line: bytes,
    reason: str,
) -> None:
    clients.cluster.topic_settings["lines"] = {**SETTINGS, **settings}
    separator = () if line == b"NULL" else ("--key-separator", ":")
    good = [b"k:a", b"k:" + b"x" * 929] if separator else []
    typed = b"\n".join([*good, line, b"k:c"])
    said = refusal("produce", "lines", *separator, *options, typed=typed)
    assert f"line {len(good) + 1}: it {reason}" in said
    count = 0 if options else len(good)
    if not settings:
        assert "than topic 'lines' takes (max.message.bytes=1000): write a shorter one, or" in said
    progress = f"{count} records were written, the next is line 3: go on with --from-line 3"
    assert said.endswith(progress if count else "; nothing was written")
    assert len(written(clients)) == count
    assert clients.batch_bytes_max == 1000


def test_a_time_that_the_topic_excludes_is_named_with_the_setting(clients: InMemoryClients) -> None:
    clients.cluster.topic_settings["lines"] = {**SETTINGS, "message.timestamp.before.max.ms": "9"}
    said = refusal("produce", "lines", "--timestamp-separator", " ", typed=b"@5000 a\n")
    assert "line 1: its time, 1970-01-01T00:00:05.000Z (@5000), is" in said
    assert "takes no more than its message.timestamp.before.max.ms=9: give another time" in said


def test_a_refused_batch_is_written_again_up_to_the_record_that_is_refused(
    clients: InMemoryClients,
) -> None:
    refuse(clients, bad=TOO_LARGE)
    said = refusal("produce", "lines", typed=b"a\nb\nbad\nc\n")
    assert "line 3: it has 71 bytes with its headers and its batch, more than topic" in said
    assert said.endswith("2 records were written, the next is line 3: go on with --from-line 3")
    assert written(clients) == [b"a", b"b"]


def test_a_record_is_not_written_behind_later_ones_of_its_key(clients: InMemoryClients) -> None:
    refuse(clients, batch_records=3, bad=TOO_LARGE)
    said = refusal("produce", "lines", "--key", "k", typed=b"a\nb\nbad\nc\nd\n")
    assert "3 not delivered: " in said
    assert "(a broker refuses a batch for one record, line 1 to line 3)" in said
    assert said.endswith("0 records were written, the next is line 1: go on with --from-line 1; "
                         "of those after it 2 records were written already")  # fmt: skip
    assert written(clients) == [b"c", b"d"]
    options = ("produce", "lines", "--key-separator", ":")
    said = refusal(*options, typed=b"a:a\nb:b\nc:bad\nd:d\ne:e\n")
    assert "line 3: it has 72 bytes" in said
    assert written(clients) == [b"c", b"d", b"d", b"e", b"a", b"b"]


def test_a_transaction_with_a_refused_record_names_it_and_writes_nothing(
    clients: InMemoryClients,
) -> None:
    refuse(clients, bad=TOO_LARGE)
    said = refusal("produce", "lines", "--transaction", typed=b"a\nb\nbad\nc\n")
    assert "line 3: it has 71 bytes" in said
    assert said.endswith("; nothing was written")
    assert (written(clients), clients.cluster.open_transactions) == ([], {})


class InterruptedInput(io.BytesIO):
    """Holds lines, and receives a signal at the end instead of ending."""

    signal_number = signal.SIGINT

    def __next__(self) -> bytes:
        try:
            return super().__next__()
        except StopIteration:
            os.kill(os.getpid(), self.signal_number)
            raise

    def readline(self, size: int | None = -1, /) -> bytes:
        return super().readline(size)

    def __iter__(self) -> Iterator[bytes]:
        return self


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("options", [(), ("--transaction",)])
def test_an_interrupted_command_says_what_was_written(
    clients: InMemoryClients,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    options: tuple[str, ...],
    request: pytest.FixtureRequest,
) -> None:
    stream = InterruptedInput(b"a\nb\nc\n")
    stream.signal_number = number
    # A shell that starts the tests in the background has them ignore it.
    taken = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, taken))
    monkeypatch.setattr("pathlib.Path.open", lambda *_: stream)
    said = refusal("produce", "lines", "--file", "any", *options)
    if options:
        assert said.endswith("interrupted; nothing was written")
        assert written(clients) == []
    else:
        assert said.endswith("interrupted; 3 records were written, the next is line 4: go on with "
                             "--from-line 4")  # fmt: skip
        assert written(clients) == [b"a", b"b", b"c"]


def test_a_transaction_writes_all_records_or_none(clients: InMemoryClients) -> None:
    command = ("produce", "lines", "--transaction", "--key-separator", ":")
    said = refusal(*command, typed=b"a:1\nb:2\noops\n")
    assert said.endswith("line 3: 'oops' has no ':' between key and value; nothing was written")
    assert written(clients) == []
    result = CliRunner().invoke(cli, command, input=b"a:1\nb:2\n")
    assert result.stderr == "2 records to lines on memory:9092\n"
    assert written(clients) == [b"1", b"2"]
    assert CliRunner().invoke(cli, command, input=b"").exit_code == 0
    assert not clients.cluster.open_transactions


def test_a_lost_answer_to_a_commit_is_told_as_an_unknown_outcome(clients: InMemoryClients) -> None:
    def alter(producer: CommandProducer) -> None:
        producer.is_commit_lost = True

    clients.alter_producer = alter
    said = refusal("produce", "lines", "a", "b", "--transaction")
    assert "whether the 2 records were written is not known: read the topic by `" in said
