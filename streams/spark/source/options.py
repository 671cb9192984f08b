"""Parse the data source's options from texts to checked values, or raise a clear ConfigError.

The table of docs/spark.md is the contract. Option names have no case, as in Spark.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Literal, TypeVar

import orjson

from streams.errors import ConfigError
from streams.runtime.clients.range_reader import FORCED_SETTINGS
from streams.spark.cuts.cut import Cut
from streams.spark.source.broker_access import BrokerAccess

RECORDS_PER_SPLIT = 500_000

_COMMON_OPTIONS = {"bootstrap_servers", "topic", "headers"} | {
    f"{each}{suffix}" for each in ("key", "value") for suffix in ("", "_schema")
}
_COMMON_OPTIONS |= {"schema_registry"}
_READ_OPTIONS = _COMMON_OPTIONS | {
    "windowed",
    "window_size_ms",
    "mode",
    "isolation",
    "records_per_split",
}
BATCH_READ_OPTIONS = _READ_OPTIONS | {
    "application_id",
    "store",
    "content",
    "versioned",
    "retention_ms",
    "partitions",
    "offsets_from",
    "offsets_to",
    "timestamps_from",
    "timestamps_to",
    "cut",
}
STREAM_READ_OPTIONS = _READ_OPTIONS | {"offsets_from", "max_records_per_trigger"}
WRITE_OPTIONS = _COMMON_OPTIONS | {"write_id", "on_changed_rows"}
SPARK_OPTIONS = {"checkpointlocation", "queryname"}
"""Options of Spark's own, which it hands on together with those of a source."""

_DEDICATED_OPTIONS = {"bootstrap.servers": "bootstrap_servers", "isolation.level": "isolation"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

E = TypeVar("E", bound=StrEnum)
OffsetSpec = int | Literal["earliest", "latest"]
"""An offset, or the beginning or end of a partition."""


class ReadContent(StrEnum):
    RECORDS = "records"
    COVERAGE = "coverage"
    CHANGELOG = "changelog"


class SerdeName(StrEnum):
    """Names the serdes that the options `key` and `value` take."""

    BYTES = "bytes"
    STRING = "string"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    JSON = "json"
    AVRO = "avro"


class WindowedKeyKind(StrEnum):
    """Names the kinds of windowed keys: of time windows or of sessions."""

    TIME = "time"
    SESSION = "session"


class VersionedRead(StrEnum):
    """Says whether a store is versioned, and whether each version or the latest is read."""

    EVERY = "true"
    LATEST = "latest"
    NO = "false"


class ParseMode(StrEnum):
    """Names what to do about a row that a serde can't read, as Spark's ParseMode does."""

    PERMISSIVE = "PERMISSIVE"
    FAILFAST = "FAILFAST"
    DROPMALFORMED = "DROPMALFORMED"


class IsolationLevel(StrEnum):
    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SerdeOptions:
    """Describes how the bytes of keys and values are encoded.

    Schemas are DDL, of `json`, or Avro's, of `avro`; `schema_registry` is there where one of them
    is that; `window_size_ms` where windows are of `time`.
    """

    key: SerdeName = SerdeName.BYTES
    value: SerdeName = SerdeName.BYTES
    key_schema: str | None = None
    value_schema: str | None = None
    schema_registry: str | None = None
    windowed: WindowedKeyKind | None = None
    window_size_ms: int | None = None
    mode: ParseMode = ParseMode.PERMISSIVE
    headers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReadLimits:
    """Describes which partitions, offsets and times of a topic a read is limited to.

    A mapping is by partition; what it leaves out has no limit. Times in ms since 1970. Ends are
    exclusive.
    """

    partitions: tuple[int, ...] | None = None
    offsets_from: OffsetSpec | Mapping[int, OffsetSpec] = "earliest"
    offsets_to: OffsetSpec | Mapping[int, OffsetSpec] = "latest"
    timestamps_from: int | Mapping[int, int] | None = None
    timestamps_to: int | Mapping[int, int] | None = None
    cut: Cut | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Holds the options of a batch read: of `topic`, or of `store` of `application_id`."""

    access: BrokerAccess
    topic: str | None = None
    application_id: str | None = None
    store: str | None = None
    content: ReadContent = ReadContent.RECORDS
    versioned: VersionedRead = VersionedRead.NO
    retention_ms: int | None = None
    serdes: SerdeOptions = SerdeOptions()
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    limits: TopicReadLimits = TopicReadLimits()
    records_per_split: int = RECORDS_PER_SPLIT


def parse_read_options(
    option_texts: Mapping[str, str], ignored_names: Collection[str] = ()
) -> ReadOptions:
    """Parse the options of a batch read.

    `ignored_names`: names that may be there and are none of its options: when Spark asks for the
    columns it doesn't say whether for a batch or a streaming read. Raises ConfigError.
    """
    options = DataSourceOptions(
        option_texts, BATCH_READ_OPTIONS.union(ignored_names), "a batch read"
    )
    topic, application_id, store = map(options.get_text, ("topic", "application_id", "store"))
    if (topic is None) == (store is None):
        raise ConfigError(
            "a read needs either option topic, or application_id and store: "
            f"given are topic={topic!r}, store={store!r}"
        )
    if (store is None) != (application_id is None):
        raise ConfigError(
            "options application_id and store go together: "
            f"given are application_id={application_id!r}, store={store!r}"
        )
    content = options.get_choice("content", ReadContent) or ReadContent.RECORDS
    if store is None and content is ReadContent.CHANGELOG:
        raise ConfigError("option content=changelog is of a store: give application_id and store")
    if store is None and options.get_boolean("versioned"):
        raise ConfigError("option versioned is of a store: give application_id and store")
    if content is ReadContent.COVERAGE and (
        options.get_text("timestamps_from") or options.get_text("timestamps_to")
    ):
        raise ConfigError("content=coverage counts offsets: limit it by offsets, not by times")
    return ReadOptions(
        access=options.get_broker_access(),
        topic=topic,
        application_id=application_id,
        store=store,
        content=content,
        versioned=options.get_choice("versioned", VersionedRead) or VersionedRead.NO,
        retention_ms=options.get_integer("retention_ms"),
        serdes=parse_serde_options(options),
        isolation=options.get_choice("isolation", IsolationLevel) or IsolationLevel.READ_COMMITTED,
        limits=_parse_limits(options),
        records_per_split=options.get_integer("records_per_split", 1) or RECORDS_PER_SPLIT,
    )


def parse_serde_options(options: DataSourceOptions, *, is_write: bool = False) -> SerdeOptions:
    """Parse the options for keys and values of a read, or of a write, where JSON has no schema."""
    windowed = options.get_choice("windowed", WindowedKeyKind)
    found = SerdeOptions(
        key=options.get_choice("key", SerdeName) or SerdeName.BYTES,
        value=options.get_choice("value", SerdeName) or SerdeName.BYTES,
        key_schema=options.get_text("key_schema"),
        value_schema=options.get_text("value_schema"),
        schema_registry=options.get_text("schema_registry"),
        windowed=windowed,
        window_size_ms=options.get_integer("window_size_ms", 1),
        mode=options.get_choice("mode", ParseMode) or ParseMode.PERMISSIVE,
        headers=options.get_boolean("headers"),
    )
    for name, serde, schema in (
        ("key", found.key, found.key_schema),
        ("value", found.value, found.value_schema),
    ):
        if schema is not None and serde not in (SerdeName.JSON, SerdeName.AVRO):
            raise ConfigError(
                f"option {name}_schema is of {name}=json or avro: {name} is {serde.value}"
            )
        if schema is None and serde is SerdeName.JSON and not is_write:
            raise ConfigError(
                f"option {name}=json needs {name}_schema, a Spark schema such as 'id INT, at DATE'"
            )
        if serde is SerdeName.AVRO and found.schema_registry is None:
            raise ConfigError(f"option {name}=avro needs schema_registry, the registry's URL")
    if windowed is WindowedKeyKind.TIME and found.window_size_ms is None:
        raise ConfigError("option windowed=time needs window_size_ms: the keys hold no ends")
    if windowed is not WindowedKeyKind.TIME and found.window_size_ms is not None:
        raise ConfigError("option window_size_ms is of windowed=time")
    return found


class DataSourceOptions:
    """Holds the option texts of one operation, and converts each of them by name.

    Names have no case. `operation` says in words what is done, for messages. Raises ConfigError for
    a name that is not allowed, and for a text that is not what it should be.
    """

    def __init__(
        self, option_texts: Mapping[str, str], allowed_names: Collection[str], operation: str
    ) -> None:
        self._given = {name.lower(): text for name, text in option_texts.items()}
        for name in self._given:
            if name.startswith("kafka.") or name in allowed_names or name in SPARK_OPTIONS:
                continue
            if name in BATCH_READ_OPTIONS | STREAM_READ_OPTIONS | WRITE_OPTIONS:
                raise ConfigError(f"option {name} is not for {operation}")
            raise ConfigError(
                f"there is no option {name!r}{_suggest_similar(name, allowed_names)}; there are "
                f"{', '.join(sorted(allowed_names))} and kafka.*"
            )

    def get_text(self, name: str) -> str | None:
        """Return the text of an option without spaces around it, or None if there is none."""
        text = self._given.get(name)
        return None if text is None or not text.strip() else text.strip()

    def require_text(self, name: str) -> str:
        """Return the text of an option, or raise ConfigError if it is not given."""
        found = self.get_text(name)
        if found is None:
            raise ConfigError(f"option {name} is needed")
        return found

    def get_integer(self, name: str, minimum: int = 0) -> int | None:
        """Return the whole number of an option, at least `minimum`, or None if it is not given."""
        text = self.get_text(name)
        return None if text is None else parse_integer(name, text, minimum)

    def get_boolean(self, name: str) -> bool:
        """Return whether an option is `true`; it is false if it is not given."""
        match (self.get_text(name) or "false").lower():
            case "true":
                return True
            case "false":
                return False
            case other:
                raise ConfigError(f"option {name} can't be {other!r}: it takes true or false")

    def get_choice(self, name: str, choices: type[E]) -> E | None:
        """Return the member of `choices` that an option names, or None if it is not given."""
        text = self.get_text(name)
        if text is None:
            return None
        for each in choices:
            if each.value.lower() == text.lower():
                return each
        raise ConfigError(
            f"option {name} can't be {text!r}: it takes {', '.join(each.value for each in choices)}"
        )

    def get_broker_access(self) -> BrokerAccess:
        """Return the access to the brokers of `bootstrap_servers` with the options `kafka.*`."""
        kafka = {
            name.removeprefix("kafka."): text
            for name, text in self._given.items()
            if name.startswith("kafka.")
        }
        for name in kafka:
            if name in _DEDICATED_OPTIONS:
                raise ConfigError(f"option kafka.{name} is given as {_DEDICATED_OPTIONS[name]}")
            if name in FORCED_SETTINGS:
                raise ConfigError(f"option kafka.{name} can't be set: exact reading needs its own")
        return BrokerAccess(self.require_text("bootstrap_servers"), kafka)


def parse_integer(option_name: str, text: str, minimum: int = 0) -> int:
    """Parse a whole number of at least `minimum`, or raise ConfigError with the option's name."""
    try:
        found = int(text)
    except ValueError:
        found = minimum - 1
    if found < minimum:
        raise ConfigError(
            f"option {option_name} can't be {text!r}: it takes a whole number from {minimum} on"
        )
    return found


def _parse_limits(options: DataSourceOptions) -> TopicReadLimits:
    partitions = options.get_text("partitions")
    cut = options.get_text("cut")
    return TopicReadLimits(
        partitions=None if partitions is None else _parse_partition_numbers(partitions),
        offsets_from=parse_offsets(options, "offsets_from", "earliest"),
        offsets_to=parse_offsets(options, "offsets_to", "latest"),
        timestamps_from=_parse_times(options, "timestamps_from"),
        timestamps_to=_parse_times(options, "timestamps_to"),
        cut=None if cut is None else _load_cut(cut),
    )


def parse_offsets(
    options: DataSourceOptions, option_name: str, default: OffsetSpec
) -> OffsetSpec | dict[int, OffsetSpec]:
    """Parse an option with one offset for all partitions, or with JSON of one for each."""
    text = options.get_text(option_name)
    if text is None:
        return default
    if text.startswith("{"):
        return {
            p: _parse_offset(option_name, each)
            for p, each in _parse_by_partition(option_name, text).items()
        }
    return _parse_offset(option_name, text)


def _parse_offset(option_name: str, text: str) -> OffsetSpec:
    match text.lower():
        case "earliest":
            return "earliest"
        case "latest":
            return "latest"
    if not text.isdecimal():
        raise ConfigError(
            f"option {option_name} can't be {text!r}: it takes an offset, earliest, latest, or "
            "JSON of "
            'one for each partition, as {"0": 5, "1": "latest"}'
        )
    return int(text)


def _parse_times(options: DataSourceOptions, option_name: str) -> int | dict[int, int] | None:
    text = options.get_text(option_name)
    if text is None:
        return None
    if text.startswith("{"):
        return {
            p: _parse_time_ms(option_name, each)
            for p, each in _parse_by_partition(option_name, text).items()
        }
    return _parse_time_ms(option_name, text)


def _parse_time_ms(option_name: str, text: str) -> int:
    """Parse a time into ms since 1970; one without a zone is UTC."""
    if text.isdecimal():
        return int(text)
    refusal = ConfigError(
        f"option {option_name} can't be {text!r}: it takes ms since 1970, a time as "
        '2026-01-31T12:00:00Z, or JSON of one for each partition, as {"0": 1767225600000}'
    )
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise refusal from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    if found < _EPOCH:
        raise refusal
    return (found - _EPOCH) // timedelta(milliseconds=1)


def _parse_by_partition(option_name: str, text: str) -> dict[int, str]:
    try:
        found = orjson.loads(text)
        return {parse_integer(option_name, number): str(each) for number, each in found.items()}
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"option {option_name} can't be {text!r}: as JSON, {error}") from None


def _parse_partition_numbers(text: str) -> tuple[int, ...]:
    """Parse `0,2` or `0-3` or both into partition numbers, in order, each once."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(
                f"option partitions can't be {text!r}: it takes numbers, as 0,2 or 0-3"
            )
        end = int(last) if dash else int(first)
        if end < int(first):
            raise ConfigError(f"option partitions can't be {text!r}: {part.strip()} is no range")
        found.update(range(int(first), end + 1))
    return tuple(sorted(found))


def _load_cut(text: str) -> Cut:
    """Load a cut that is given as JSON or as the path of a file."""
    return Cut.from_json(text) if text.startswith("{") else Cut.load(Path(text))


def _suggest_similar(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f": did you mean {close[0]!r}?" if close else ""
