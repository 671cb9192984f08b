"""Define the command `millrace produce`, which writes records to a topic."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from streams.command_options import (
    BootstrapServers,
    ConnectionFile,
    JsonOutput,
    KeySerde,
    StateDir,
    ValueSerde,
)

if TYPE_CHECKING:
    from streams.commands.cluster_clients import ClusterClients
    from streams.commands.named_serdes import NamedSerde

_FLUSH_RECORDS = 10_000
"""How many records are written before they are waited for."""
_FIRST_MS = 1
"""Written instead of 0 ms, which librdkafka takes for no timestamp and replaces by the present."""


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


class _Encoded(NamedTuple):
    """Represents a record that is to be written; without a timestamp it has that of all records."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None


class _Line(NamedTuple):
    """Represents a line of the input with its number, for messages."""

    number: int
    text: str


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
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VALUE", help="A header of each, repeatable."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option(help="Write to this partition, not to that of the key.")
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Their time: 2026-11-25T10:00, 1764064800000 (ms), 15m (ago)."
        ),
    ] = None,
    timestamp_separator: _TimestampSeparator = None,
    key_serde: KeySerde = "string",
    value_serde: ValueSerde = "string",
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    connection: ConnectionFile = None,
) -> None:
    """Write records to a topic: those given as arguments, or one for each line of the input.

    A record is its value, or with --key-separator its key, the separator and its value. With
    --timestamp-separator its time, as for --timestamp, comes first. The partition follows from
    the key as in Kafka's own clients. The command ends well only when the brokers have all records.
    Serdes: string, bytes, int32, int64, float64, json, or module:variable.
    """
    from streams.commands.cluster_clients import connect_command
    from streams.commands.named_serdes import find_serde
    from streams.commands.output import print_json_line, print_message

    with connect_command(
        bootstrap_servers, state_dir, connection, processing_guarantee="at_least_once"
    ) as clients:
        _refuse_both(key, key_separator, "the key with --key, or in each line with --key-separator")
        _refuse_both(
            timestamp,
            timestamp_separator,
            "the time with --timestamp, or in each line with --timestamp-separator",
        )
        _refuse_both(records or None, file, "records as arguments, or a file of them with --file")
        encoder = _RecordEncoder(
            find_serde(key_serde, "--key-serde", topic, "key"),
            find_serde(value_serde, "--value-serde", topic, "value"),
            key,
            key_separator,
            timestamp_separator,
            null,
        )
        fields = _parse_fields(clients, topic, headers, partition, timestamp)
        with _read_lines(records, file) as lines:
            count = _produce_lines(clients, topic, map(encoder.encode_record, lines), fields)
        if json:
            print_json_line({"topic": topic, "records": count})
        else:
            print_message(f"{count} record{'s'[: count != 1]} to {topic} on {clients.servers}")


def _refuse_both(one: object, other: object, choice: str) -> None:
    """Raise ConfigError with the `choice` if both of two options are given."""
    from streams.errors import ConfigError

    if one is not None and other is not None:
        raise ConfigError(f"give {choice}")


def _parse_fields(
    clients: ClusterClients,
    topic: str,
    headers: list[str] | None,
    partition: int | None,
    timestamp: str | None,
) -> dict[str, Any]:
    """Return what all records have, as arguments of the producer. Raises ConfigError."""
    from streams.commands.topics_command import parse_pairs

    clients.choose_partitions(topic, None if partition is None else [partition])
    pairs = parse_pairs(headers or (), "--header")
    fields: dict[str, Any] = {"headers": [(name, each.encode()) for name, each in pairs.items()]}
    if partition is not None:
        fields["partition"] = partition
    if timestamp is not None:
        fields["timestamp"] = _parse_time(timestamp, "--timestamp")
    return fields


def _parse_time(text: str, name: str) -> int:
    """Return a time in ms since 1970. Raises ConfigError, which calls it `name`."""
    from streams.commands.offset_positions import parse_time

    return max(parse_time(text, name), _FIRST_MS)


def _produce_lines(
    clients: ClusterClients, topic: str, records: Iterable[_Encoded], fields: dict[str, Any]
) -> int:
    """Write records, wait until the brokers have them, and return their number.

    Raises: OutcomeUnknown if one is not delivered.
    """
    from streams.errors import OutcomeUnknown

    producer = clients.create_producer()
    count = 0
    largest_ms = fields.get("timestamp", 0)
    try:
        for record in records:
            if record.timestamp_ms is not None:
                fields["timestamp"] = record.timestamp_ms
                largest_ms = max(largest_ms, record.timestamp_ms)
            producer.produce(topic, value=record.value, key=record.key, **fields)
            count += 1
            if count % _FLUSH_RECORDS == 0:
                producer.flush()
        producer.flush()
    except OutcomeUnknown as error:
        hint = _explain_early_records(producer.undelivered_error_names, largest_ms)
        raise OutcomeUnknown(f"{error}{hint}") from error
    return count


def _explain_early_records(error_names: Collection[str], largest_ms: int) -> str:
    """Return what to do if brokers refused records that have times ahead of now; else nothing.

    Brokers answer INVALID_TIMESTAMP, or INVALID_RECORD for a batch with such a record.
    """
    from streams.commands.offset_positions import current_time_ms
    from streams.commands.records import format_time

    ahead_ms = largest_ms - current_time_ms()
    is_refused = {"INVALID_RECORD", "INVALID_TIMESTAMP"} & set(error_names)
    if not is_refused or ahead_ms <= 0:
        return ""
    return (
        f"; their largest timestamp, {format_time(largest_ms)} (@{largest_ms}), is "
        f"{ahead_ms / 1_000:.0f} s ahead of now, and a topic takes no more than its "
        "message.timestamp.after.max.ms (3600000 unless it is set): give earlier times, or give "
        "the topic a larger one"
    )


@contextmanager
def _read_lines(records: list[str] | None, file: Path | None) -> Iterator[Iterable[_Line]]:
    """Provide the records that were given, the lines of a file, or those of standard input."""
    from streams.errors import ConfigError

    if records:
        yield [_Line(number, text) for number, text in enumerate(records, start=1)]
        return
    if file is None:
        yield _number_lines(sys.stdin)
        return
    try:
        opened = file.open(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--file {str(file)!r} can't be read: {error.strerror}") from None
    with opened:
        yield _number_lines(opened)


def _number_lines(lines: Iterable[str]) -> Iterator[_Line]:
    """Yield lines without their ends, and their numbers. Raises ConfigError for other bytes."""
    from streams.errors import ConfigError

    try:
        for number, line in enumerate(lines, start=1):
            yield _Line(number, line.removesuffix("\n").removesuffix("\r"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"the input is no UTF-8: {error}") from None


@dataclass(frozen=True, slots=True)
class _RecordEncoder:
    """Encodes lines as records: a key for all, or before `separator` in each.

    With `time_separator` each line begins with its time.
    """

    key_format: NamedSerde
    value_format: NamedSerde
    key: str | None
    separator: str | None
    time_separator: str | None
    null: str | None

    def encode_record(self, line: _Line) -> _Encoded:
        """Return the record of a line. Raises ConfigError naming the line."""
        key, value, timestamp_ms = self.key, line.text, None
        if self.time_separator is not None:
            time, value = _split_line(line, value, self.time_separator, "time and record")
            timestamp_ms = _parse_time(time, f"record {line.number}: its time")
        if self.separator is not None:
            key, value = _split_line(line, value, self.separator, "key and value")
        return _Encoded(
            None if key is None else _encode_typed(line, "key", key, self.key_format),
            None if value == self.null else _encode_typed(line, "value", value, self.value_format),
            timestamp_ms,
        )


def _split_line(line: _Line, text: str, separator: str, parts: str) -> tuple[str, str]:
    """Return what is before and after a separator. Raises ConfigError naming the line."""
    from streams.errors import ConfigError

    before, found, after = text.partition(separator)
    if not found:
        raise ConfigError(f"record {line.number}: {text!r} has no {separator!r} between {parts}")
    return before, after


def _encode_typed(line: _Line, part: str, text: str, serde: NamedSerde) -> bytes:
    """Return the bytes of a typed key or value. Raises ConfigError naming the line."""
    from streams.errors import ConfigError

    try:
        return serde.parse(text)
    except Exception as error:
        raise ConfigError(
            f"record {line.number}: {part} {text!r} is no {serde.name} ({error})"
        ) from None
