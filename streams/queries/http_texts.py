"""Write keys, values and positions of stores into URLs, headers and lines of JSON, and read them.

In JSON a key and a value are what a person writes; as bytes they are base64 of what their serdes
make, which every serde has.
"""

from __future__ import annotations

import base64
from typing import Any, Literal

import orjson

from streams.common.topic_partitions import Partition
from streams.queries.committed_reads import Position
from streams.queries.store_reads import StoreRow
from streams.serdes import Serde

RowFormat = Literal["json", "bytes"]
_TEXT_SERDES = frozenset(("string",))


def format_position(position: Position) -> str:
    """Return a position as TOPIC-PARTITION:OFFSET, with commas between."""
    return ",".join(f"{p.topic}-{p.number}:{offset}" for p, offset in sorted(position.items()))


def parse_position(text: str) -> dict[Partition, int]:
    """Return the position that a text of `format_position` names. Raises ValueError."""
    position: dict[Partition, int] = {}
    for each in filter(None, text.split(",")):
        name, _, offset = each.strip().rpartition(":")
        topic, _, number = name.rpartition("-")
        if not (topic and number.isdecimal() and offset.isdecimal()):
            raise ValueError(f"{each!r} is not TOPIC-PARTITION:OFFSET, as in orders-0:42")
        position[Partition(topic, int(number))] = int(offset)
    return position


def parse_key(serde: Serde[Any], text: str, row_format: RowFormat) -> Any:
    """Return the key that a text stands for: base64 of its bytes, or as a person writes it.

    A string is the text itself, anything else is JSON. Raises ValueError.
    """
    try:
        if row_format == "bytes":
            return serde.deserialize(base64.b64decode(text, altchars=b"-_", validate=True))
        key = text if serde.name in _TEXT_SERDES else orjson.loads(text)
        return serde.deserialize(serde.serialize(key))
    except Exception as error:
        raise ValueError(f"{text!r} is no key for the serde {serde.name!r}: {error}") from error


def format_key(serde: Serde[Any], key: Any) -> str:
    """Return a key as base64 of its bytes, for a URL."""
    return base64.urlsafe_b64encode(serde.serialize(key)).decode()


def encode_row(
    key_serde: Serde[Any], value_serde: Serde[Any], row: StoreRow, row_format: RowFormat
) -> bytes:
    """Return a row as one line of JSON. Raises ValueError for what JSON does not have."""
    fields: dict[str, Any] = {"key": row.key, "value": row.value}
    if row_format == "bytes":
        fields = {
            "key": base64.b64encode(key_serde.serialize(row.key)).decode(),
            "value": base64.b64encode(value_serde.serialize(row.value)).decode(),
        }
    for name in ("timestamp_ms", "start_ms", "end_ms"):
        if (time_ms := getattr(row, name)) is not None:
            fields[name] = time_ms
    try:
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise ValueError(f"{error}: ask for format=bytes") from error


def decode_row(key_serde: Serde[Any], value_serde: Serde[Any], line: bytes) -> StoreRow:
    """Return the row of a line that `encode_row` has made with bytes. Raises ValueError."""
    fields: Any = orjson.loads(line)
    try:
        return StoreRow(
            key_serde.deserialize(base64.b64decode(fields["key"])),
            value_serde.deserialize(base64.b64decode(fields["value"])),
            fields.get("timestamp_ms"),
            fields.get("start_ms"),
            fields.get("end_ms"),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"no row of a store: {line!r:.200}") from error
