"""Print records of a topic as lines, for `millrace consume`, `topics tail` and `changelog dump`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import typer

from streams.commands.named_serdes import NamedSerde
from streams.commands.output import format_raw_bytes, format_value, print_json_line
from streams.errors import SerdeError


@dataclass(frozen=True, slots=True)
class RecordPrinter:
    """Prints records, each as a line of text or of JSON.

    `with_metadata` adds partition, offset, time and headers to lines of text; JSON has them anyway.
    """

    key: NamedSerde
    value: NamedSerde
    separator: str = "\t"
    as_json: bool = False
    with_metadata: bool = False

    def print_record(self, message: Any) -> None:
        """Print a record as confluent-kafka's consumer returns it. Raises SerdeError."""
        key = _decode_field(self.key, message, "key", message.key())
        value = _decode_field(self.value, message, "value", message.value())
        headers = [(name, each) for name, each in message.headers() or ()]
        time_ms = message.timestamp()[1]
        if self.as_json:
            print_json_line(
                {
                    "topic": message.topic(),
                    "partition": message.partition(),
                    "offset": message.offset(),
                    "timestamp_ms": time_ms,
                    "key": key,
                    "value": value,
                    "headers": headers,
                }
            )
            return
        line = f"{format_value(key)}{self.separator}{format_value(value)}"
        if self.with_metadata:
            pairs = ",".join(
                f"{name}={'null' if each is None else format_raw_bytes(each)}"
                for name, each in headers
            )
            place = f"{message.partition()}@{message.offset()}"
            line = f"{place}{self.separator}{format_time(time_ms)}{self.separator}{line}"
            line += f"{self.separator}{pairs}" if pairs else ""
        typer.echo(line)


def format_time(time_ms: int) -> str:
    """Return a time as ISO 8601 in UTC, or - for a record without a time."""
    if time_ms < 0:
        return "-"
    try:
        found = datetime.fromtimestamp(time_ms / 1_000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return f"@{time_ms}"
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def limit_records(records: Iterator[Any], count: int | None) -> Iterator[Any]:
    """Yield the first `count` records, or all, and read none after the last that is wanted."""
    for number, record in enumerate(records, start=1):
        yield record
        if number == count:
            return


def _decode_field(serde: NamedSerde, message: Any, field: str, data: bytes | None) -> Any:
    """Return the value of a record's key or value. Raises SerdeError naming the record."""
    if data is None:
        return None
    try:
        return serde.show(data)
    except Exception as error:
        raise SerdeError(
            f"the {field} of {message.topic()}[{message.partition()}] at offset "
            f"{message.offset()} is no {serde.name} ({error}): it is "
            f"{format_raw_bytes(data[:50])}; give another serde with --{field}-serde, such as bytes"
        ) from error
