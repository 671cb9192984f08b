"""Encode lines that a person types as records, for `millrace produce`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from streams.commands.input_lines import InputLine
from streams.commands.named_serdes import NamedSerde
from streams.commands.offset_positions import parse_time
from streams.errors import ConfigError

_FIRST_MS = 1
"""Written instead of 0 ms, which librdkafka takes for no timestamp and replaces by the present."""


class EncodedRecord(NamedTuple):
    """Represents a record that is to be written; without a timestamp it has that of all records.

    `place` is where it stands in the input, for messages: `line 3`.
    """

    place: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None


def parse_record_time(text: str, name: str) -> int:
    """Return a record's time in ms since 1970.

    Raises ConfigError, which calls it `name`, for what is no time, or one before 1970.
    """
    time_ms = parse_time(text, name)
    if time_ms == 0 and not text.removeprefix("@").isdigit():
        with suppress(ValueError, OverflowError, OSError):
            if datetime.fromisoformat(text).timestamp() < 0:
                raise ConfigError(f"{name} {text!r} is before 1970: records have no such times")
    return max(time_ms, _FIRST_MS)


@dataclass(frozen=True, slots=True)
class RecordEncoder:
    """Encodes lines as records: a key for all, or before `separator` in each.

    With `time_separator` each line begins with its time.
    """

    key_format: NamedSerde
    value_format: NamedSerde
    key: str | None
    separator: str | None
    time_separator: str | None
    null: str | None

    def encode_record(self, line: InputLine) -> EncodedRecord:
        """Return the record of a line. Raises ConfigError naming the line."""
        key, value, timestamp_ms = self.key, line.text, None
        if self.time_separator is not None:
            time, value = _split_at_separator(line, value, self.time_separator, "time and record")
            timestamp_ms = parse_record_time(time, f"{line.place}: its time")
        if self.separator is not None:
            key, value = _split_at_separator(line, value, self.separator, "key and value")
        return EncodedRecord(
            line.place,
            None if key is None else _encode_typed(line, "key", key, self.key_format),
            None if value == self.null else _encode_typed(line, "value", value, self.value_format),
            timestamp_ms,
        )


def _split_at_separator(line: InputLine, text: str, separator: str, parts: str) -> tuple[str, str]:
    """Split a text into what is before a separator and after it. Raises ConfigError without one."""
    before, found, after = text.partition(separator)
    if not found:
        raise ConfigError(f"{line.place}: {text!r:.200} has no {separator!r} between {parts}")
    return before, after


def _encode_typed(line: InputLine, part: str, text: str, serde: NamedSerde) -> bytes:
    """Return the bytes of a typed key or value. Raises ConfigError naming the line."""
    try:
        return serde.parse(text)
    except Exception as error:
        raise ConfigError(
            f"{line.place}: {part} {text!r:.200} is no {serde.name} ({error!s:.500})"
        ) from None
