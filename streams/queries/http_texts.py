"""Write keys, values and positions of stores into URLs, headers and lines of JSON, and read them.

In JSON a key and a value are what a person writes; as bytes they are base64 of what their serdes
make, which every serde has, and in hex the same.
"""

from __future__ import annotations

import base64
from typing import Any, Literal, NamedTuple, get_args

import orjson

from streams import serdes
from streams.common.topic_partitions import Partition
from streams.graph.nodes import StoreSpec
from streams.queries.committed_reads import Position
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_reads import StoreRow
from streams.serdes import Serde

RowFormat = Literal["json", "bytes", "hex"]
ROW_FORMATS: tuple[RowFormat, ...] = get_args(RowFormat)
KEY_SERDES: dict[str, Serde[Any]] = {
    each.name: each
    for each in (serdes.string, serdes.int32, serdes.int64, serdes.float64, serdes.json)
}
"""The serdes by which keys may be written instead of the store's own, by name."""
_ANY = 2**62
"""A lag that no changelog has, for any."""
_TEXT_SERDES = frozenset(("string",))
_TO_URLSAFE = str.maketrans("+/", "-_")


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


def format_stale_bounds(bounds: StaleBounds | None) -> dict[str, str]:
    """Return the parameters that let standbys answer; none if they may not."""
    if bounds is None:
        return {}
    parameters = {"stale-ok-lag": str(_ANY if bounds.max_lag is None else bounds.max_lag)}
    if bounds.max_age_s is not None:
        parameters["stale-ok-age"] = str(int(bounds.max_age_s * 1000))
    return parameters


def parse_stale_bounds(lag: int | None, age_ms: int | None) -> StaleBounds | None:
    """Return the bounds that two parameters name; None if neither is given."""
    if lag is None and age_ms is None:
        return None
    return StaleBounds(None if lag == _ANY else lag, None if age_ms is None else age_ms / 1000)


def parse_partitions(text: str) -> frozenset[int] | None:
    """Return the partition numbers of a list with commas; None for no text."""
    return frozenset(int(each) for each in text.split(",") if each) or None


class RowTexts(NamedTuple):
    """Converts keys and rows of one store to text and back, in one format.

    `written_key` is the serde by which keys are written and shown, where it isn't the store's own.
    """

    key: Serde[Any]
    value: Serde[Any]
    row_format: RowFormat = "json"
    written_key: Serde[Any] | None = None

    @classmethod
    def of_store(cls, spec: StoreSpec, row_format: RowFormat, key_serde: str | None) -> RowTexts:
        """Return what converts the keys and rows of a store; `key_serde` is one of KEY_SERDES."""
        written_key = None if key_serde is None else KEY_SERDES[key_serde]
        return cls(spec.key, spec.value, row_format, written_key)

    def parse_key(self, text: str) -> Any:
        """Return the key that a text stands for: its bytes, or as a person writes it.

        A string is the text itself, anything else is JSON. Raises ValueError.
        """
        serde = self.written_key or self.key
        try:
            return self.key.deserialize(self._parse_bytes(serde, text))
        except Exception as error:
            raise ValueError(
                f"{text!r:.200} is no key for the serde {serde.name!r} with format="
                f"{self.row_format}: {error}"
            ) from error

    def _parse_bytes(self, serde: Serde[Any], text: str) -> bytes:
        """Return the bytes of a key."""
        if self.row_format == "bytes":
            return base64.b64decode(text.translate(_TO_URLSAFE), altchars=b"-_", validate=True)
        if self.row_format == "hex":
            return bytes.fromhex(text)
        return serde.serialize(text if serde.name in _TEXT_SERDES else orjson.loads(text))

    def encode_row(self, row: StoreRow) -> bytes:
        """Return a row as one line of JSON. Raises ValueError for what JSON does not have."""
        fields: dict[str, Any] = {"key": row.key, "value": row.value}
        if self.row_format != "json":
            serialized = (self.key.serialize(row.key), self.value.serialize(row.value))
            texts = (
                each.hex() if self.row_format == "hex" else base64.b64encode(each).decode()
                for each in serialized
            )
            fields = dict(zip(fields, texts, strict=True))
        elif self.written_key is not None:
            fields["key"] = self._rewrite_key(self.written_key, row.key)
        for name in ("timestamp_ms", "start_ms", "end_ms"):
            if (time_ms := getattr(row, name)) is not None:
                fields[name] = time_ms
        try:
            return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
        except (TypeError, orjson.JSONEncodeError) as error:
            raise ValueError(f"{error}: ask for format=bytes") from error

    def _rewrite_key(self, written_key: Serde[Any], key: Any) -> Any:
        """Return a key as another serde reads its bytes. Raises ValueError."""
        try:
            return written_key.deserialize(self.key.serialize(key))
        except Exception as error:
            raise ValueError(
                f"key-serde={written_key.name}: the key {key!r:.100} is none of its: {error}"
            ) from error


def format_key(serde: Serde[Any], key: Any) -> str:
    """Return a key as base64 of its bytes, for a URL."""
    return base64.urlsafe_b64encode(serde.serialize(key)).decode()


def encode_result(row: StoreRow) -> bytes:
    """Return the result of a registered query for one partition as one line of JSON."""
    fields = {"partition": row.key, "result": row.value}
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def decode_result(line: bytes) -> StoreRow:
    """Return the row of a line that `encode_result` has made. Raises ValueError."""
    fields: Any = orjson.loads(line)
    try:
        return StoreRow(int(fields["partition"]), fields["result"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no result of a query: {line!r:.200}") from error


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
