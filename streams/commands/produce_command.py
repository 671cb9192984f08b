"""Define the command `millrace produce`, which writes records to a topic."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    KeySerde,
    StateDir,
    ValueSerde,
)

if TYPE_CHECKING:
    from streams.commands.cluster_clients import ClusterClients
    from streams.commands.input_lines import InputLine
    from streams.commands.record_encoding import EncodedRecord

WrittenCount: TypeAlias = int

_TRANSACTION_SETTINGS: dict[str, Any] = {
    "processing_guarantee": "exactly_once_v2",
    "transaction_timeout_ms": 300_000,
}
"""The settings of --transaction. A transaction that is killed holds back the readers of committed
records until its time-out, and one that takes longer is aborted."""


_KeySeparator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What separates key and value in a line; none if unset."),
]
_TimestampSeparator = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="What separates a time at the beginning of a line from the rest."
    ),
]
_NullText = Annotated[
    str | None, typer.Option(metavar="TEXT", help="The text that stands for a value that is none.")
]


_Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="A header of each, repeatable."),
]
_PartitionNumber = Annotated[
    int | None, typer.Option(help="Write to this partition, not to that of the key.")
]
_Timestamp = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Their time: 2026-11-25T10:00, 1764064800000 (ms), 15m (ago)."
    ),
]
_Transaction = Annotated[
    bool, typer.Option("--transaction", help="Write all records, or none if one can't be.")
]
_HeaderList = Annotated[
    str | None,
    typer.Option(
        "--headers",
        metavar="JSON",
        help="""All headers of each, as [["name", "text"], ["name", "0xff00"], ["name", null]].""",
    ),
]
_Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The encoding of the lines; utf-8 if it is not given."),
]
_FromLine = Annotated[
    int, typer.Option("--from-line", metavar="NUMBER", min=1, help="Leave the lines before out.")
]


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.")],
    records: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RECORD]...", help="Records; without any, lines of the input."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Read the lines of this file, not standard input.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="The key of every record.")] = None,
    key_separator: _KeySeparator = None,
    null: _NullText = None,
    headers: _Headers = None,
    header_list: _HeaderList = None,
    partition: _PartitionNumber = None,
    timestamp: _Timestamp = None,
    timestamp_separator: _TimestampSeparator = None,
    encoding: _Encoding = None,
    from_line: _FromLine = 1,
    transaction: _Transaction = False,
    key_serde: KeySerde = "string",
    value_serde: ValueSerde = "string",
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Write records to a topic: those given as arguments, or one for each line of the input.

    A record is its value, or with --key-separator its key, the separator and its value. With
    --timestamp-separator its time, as for --timestamp, comes first. The partition follows from
    the key as in Kafka's own clients. The command ends well only when the brokers have all records;
    otherwise it says how many were written, and with which line to go on. Serdes: string,
    bytes, int32, int64, float64, json, or module:variable.
    """
    from streams.commands.cluster_clients import connect_command
    from streams.commands.named_serdes import require_named_serde
    from streams.commands.output import print_json_line, print_message
    from streams.commands.record_encoding import RecordEncoder

    settings = _TRANSACTION_SETTINGS if transaction else {"processing_guarantee": "at_least_once"}
    with connect_command(bootstrap_servers, state_dir, connection, config, **settings) as clients:
        _refuse_both(key, key_separator, "the key with --key, or in each line with --key-separator")
        in_lines = "the time with --timestamp, or in each line with --timestamp-separator"
        _refuse_both(timestamp, timestamp_separator, in_lines)
        _refuse_empty_separator("--key-separator", key_separator)
        _refuse_empty_separator("--timestamp-separator", timestamp_separator)
        _refuse_both(records or None, file, "records as arguments, or a file of them with --file")
        encoder = RecordEncoder(
            require_named_serde(key_serde, "--key-serde", topic, "key"),
            require_named_serde(value_serde, "--value-serde", topic, "value"),
            key,
            key_separator,
            timestamp_separator,
            null,
        )
        fields = _parse_fields(clients, topic, headers, header_list, partition, timestamp)
        with _open_lines(records, file, encoding, from_line) as lines, _interrupt_on_sigterm():
            encoded = map(encoder.encode_record, lines)
            if transaction:
                count = _write_in_transaction(clients, topic, encoded, fields)
            else:
                unit, first = ("record", 1) if records else ("line", from_line)
                count = _write_records(clients, topic, encoded, fields, unit, first)
        if json:
            print_json_line({"topic": topic, "records": count})
        else:
            print_message(f"{count} record{'s'[: count != 1]} to {topic} on {clients.servers}")


def _write_records(
    clients: ClusterClients,
    topic: str,
    records: Iterable[EncodedRecord],
    fields: dict[str, Any],
    unit: str,
    first: int,
) -> WrittenCount:
    """Write records without a transaction, and return their number. Raises UserError."""
    from streams.commands.record_limits import RecordLimits
    from streams.commands.record_writer import RecordWriter

    found = clients.fetch_topic_limits(topic)
    producer = clients.create_producer(None if found is None else found.batch_bytes_max)
    limits = RecordLimits(topic, found, fields)
    return RecordWriter(producer, topic, fields, limits).write_records(records, unit, first)


def _write_in_transaction(
    clients: ClusterClients, topic: str, records: Iterable[EncodedRecord], fields: dict[str, Any]
) -> WrittenCount:
    """Write records in a transaction, and return their number. Raises UserError."""
    from streams.commands.record_limits import RecordLimits
    from streams.commands.record_writer import RecordWriter
    from streams.errors import ConfigError, OutcomeUnknown

    found = clients.fetch_topic_limits(topic)
    try:
        producer = clients.create_producer(None if found is None else found.batch_bytes_max)
    except OutcomeUnknown as error:
        raise ConfigError(f"no transaction can be begun: {error}; nothing was written") from error
    limits = RecordLimits(topic, found, fields)
    return RecordWriter(producer, topic, fields, limits).write_in_transaction(records)


def _refuse_both(one: object, other: object, choice: str) -> None:
    """Raise ConfigError with the `choice` if both of two options are given."""
    from streams.errors import ConfigError

    if one is not None and other is not None:
        raise ConfigError(f"give {choice}")


def _refuse_empty_separator(option: str, separator: str | None) -> None:
    """Raise ConfigError for a separator that is nothing, which is between any two characters."""
    from streams.errors import ConfigError

    if separator == "":
        raise ConfigError(f"{option} '' separates nothing: give the text between the two parts")


def _parse_fields(
    clients: ClusterClients,
    topic: str,
    headers: list[str] | None,
    header_list: str | None,
    partition: int | None,
    timestamp: str | None,
) -> dict[str, Any]:
    """Parse the options for all records to arguments of the producer. Raises ConfigError."""
    from streams.commands.record_encoding import parse_record_time
    from streams.commands.typed_headers import parse_header_options

    clients.choose_existing_partitions(topic, None if partition is None else [partition])
    fields: dict[str, Any] = {"headers": parse_header_options(headers, header_list)}
    if partition is not None:
        fields["partition"] = partition
    if timestamp is not None:
        fields["timestamp"] = parse_record_time(timestamp, "--timestamp")
    return fields


@contextmanager
def _open_lines(
    records: list[str] | None, file: Path | None, encoding: str | None, from_line: int
) -> Iterator[Iterable[InputLine]]:
    """Provide the records that were given, the lines of a file, or those of standard input.

    Raises ConfigError for a file or an encoding that can't be read.
    """
    from streams.commands.input_lines import InputLine, read_lines, require_known_encoding
    from streams.errors import ConfigError

    if records:
        if encoding is not None or from_line > 1:
            raise ConfigError(
                "--encoding and --from-line are for the lines of a file or of standard input, and "
                "records are given as arguments"
            )
        yield [InputLine(f"record {number}", text) for number, text in enumerate(records, start=1)]
        return
    codec = require_known_encoding(encoding or "utf-8", "--encoding")
    if file is None:
        yield read_lines(sys.stdin.buffer, codec, from_line)
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise ConfigError(f"--file {str(file)!r} can't be read: {error.strerror}") from None
    with opened:
        yield read_lines(opened, codec, from_line)


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the with block as Ctrl-C does, so that it says what was written."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
