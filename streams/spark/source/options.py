"""Parse the options of the data source: text becomes checked values, or one clear ConfigError.

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
from streams.spark.source.access import Access

RECORDS_PER_SPLIT = 500_000

_ANY = {"bootstrap_servers", "topic", "headers"} | {
    f"{each}{suffix}" for each in ("key", "value") for suffix in ("", "_schema")
}
_ANY |= {"schema_registry"}
_READ = _ANY | {"windowed", "window_size_ms", "mode", "isolation", "records_per_split"}
BATCH_READ = _READ | {
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
STREAM_READ = _READ | {"offsets_from", "max_records_per_trigger"}
WRITE = _ANY | {"write_id", "on_changed_rows"}
SPARKS = {"checkpointlocation", "queryname"}
"""Options of Spark's own, which it hands on together with those of a source."""

_SET_HERE = {"bootstrap.servers": "bootstrap_servers", "isolation.level": "isolation"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

E = TypeVar("E", bound=StrEnum)
At = int | Literal["earliest", "latest"]
"""An offset, or the beginning or end of a partition."""


class Content(StrEnum):
    RECORDS = "records"
    COVERAGE = "coverage"
    CHANGELOG = "changelog"


class Serde(StrEnum):
    """Names the serdes that the options `key` and `value` take."""

    BYTES = "bytes"
    STRING = "string"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    JSON = "json"
    AVRO = "avro"


class Windowed(StrEnum):
    """Names the kinds of windowed keys: of time windows or of sessions."""

    TIME = "time"
    SESSION = "session"


class Versioned(StrEnum):
    """Says whether a store is versioned, and whether each version or the latest is read."""

    EVERY = "true"
    LATEST = "latest"
    NO = "false"


class Mode(StrEnum):
    """Says what is done about a row that a serde can't read, as Spark's ParseMode does."""

    PERMISSIVE = "PERMISSIVE"
    FAILFAST = "FAILFAST"
    DROPMALFORMED = "DROPMALFORMED"


class Isolation(StrEnum):
    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serdes:
    """Says what the bytes of keys and values mean.

    Schemas are DDL, of `json`, or Avro's, of `avro`; `schema_registry` is there where one of them
    is that; `window_size_ms` where windows are of `time`.
    """

    key: Serde = Serde.BYTES
    value: Serde = Serde.BYTES
    key_schema: str | None = None
    value_schema: str | None = None
    schema_registry: str | None = None
    windowed: Windowed | None = None
    window_size_ms: int | None = None
    mode: Mode = Mode.PERMISSIVE
    headers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Says which partitions, offsets and times of a topic a read has.

    A mapping is by partition; what it leaves out has no limit. Times in ms since 1970. Ends are
    exclusive.
    """

    partitions: tuple[int, ...] | None = None
    offsets_from: At | Mapping[int, At] = "earliest"
    offsets_to: At | Mapping[int, At] = "latest"
    timestamps_from: int | Mapping[int, int] | None = None
    timestamps_to: int | Mapping[int, int] | None = None
    cut: Cut | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Holds the options of a batch read: of `topic`, or of `store` of `application_id`."""

    access: Access
    topic: str | None = None
    application_id: str | None = None
    store: str | None = None
    content: Content = Content.RECORDS
    versioned: Versioned = Versioned.NO
    retention_ms: int | None = None
    serdes: Serdes = Serdes()
    isolation: Isolation = Isolation.READ_COMMITTED
    limits: Limits = Limits()
    records_per_split: int = RECORDS_PER_SPLIT


def read_options(given: Mapping[str, str], also: Collection[str] = ()) -> ReadOptions:
    """Parse the options of a batch read.

    `ignored_names`: names that may be there and are none of its options: when Spark asks for the
    columns it doesn't say whether for a batch or a streaming read. Raises ConfigError.
    """
    options = Given(given, BATCH_READ.union(also), "a batch read")
    topic, application_id, store = map(options.text, ("topic", "application_id", "store"))
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
    content = options.choice("content", Content) or Content.RECORDS
    if store is None and content is Content.CHANGELOG:
        raise ConfigError("option content=changelog is of a store: give application_id and store")
    if store is None and options.flag("versioned"):
        raise ConfigError("option versioned is of a store: give application_id and store")
    if content is Content.COVERAGE and (
        options.text("timestamps_from") or options.text("timestamps_to")
    ):
        raise ConfigError("content=coverage counts offsets: limit it by offsets, not by times")
    return ReadOptions(
        access=options.access(),
        topic=topic,
        application_id=application_id,
        store=store,
        content=content,
        versioned=options.choice("versioned", Versioned) or Versioned.NO,
        retention_ms=options.number("retention_ms"),
        serdes=serdes(options),
        isolation=options.choice("isolation", Isolation) or Isolation.READ_COMMITTED,
        limits=_limits(options),
        records_per_split=options.number("records_per_split", 1) or RECORDS_PER_SPLIT,
    )


def serdes(options: Given, *, writes: bool = False) -> Serdes:
    """Parse how keys and values are read, or written (JSON then needs no schema)."""
    windowed = options.choice("windowed", Windowed)
    found = Serdes(
        key=options.choice("key", Serde) or Serde.BYTES,
        value=options.choice("value", Serde) or Serde.BYTES,
        key_schema=options.text("key_schema"),
        value_schema=options.text("value_schema"),
        schema_registry=options.text("schema_registry"),
        windowed=windowed,
        window_size_ms=options.number("window_size_ms", 1),
        mode=options.choice("mode", Mode) or Mode.PERMISSIVE,
        headers=options.flag("headers"),
    )
    for name, serde, schema in (
        ("key", found.key, found.key_schema),
        ("value", found.value, found.value_schema),
    ):
        if schema is not None and serde not in (Serde.JSON, Serde.AVRO):
            raise ConfigError(
                f"option {name}_schema is of {name}=json or avro: {name} is {serde.value}"
            )
        if schema is None and serde is Serde.JSON and not writes:
            raise ConfigError(
                f"option {name}=json needs {name}_schema, a Spark schema such as 'id INT, at DATE'"
            )
        if serde is Serde.AVRO and found.schema_registry is None:
            raise ConfigError(f"option {name}=avro needs schema_registry, the registry's URL")
    if windowed is Windowed.TIME and found.window_size_ms is None:
        raise ConfigError("option windowed=time needs window_size_ms: the keys hold no ends")
    if windowed is not Windowed.TIME and found.window_size_ms is not None:
        raise ConfigError("option window_size_ms is of windowed=time")
    return found


class Given:
    """Holds the texts of the options of one operation, and converts them by name.

    Names have no case. `operation` says in words what is done, for messages. Raises ConfigError for
    a name that is not allowed, and for a text that is not what it should be.
    """

    def __init__(self, given: Mapping[str, str], allowed: Collection[str], doing: str) -> None:
        self._given = {name.lower(): text for name, text in given.items()}
        for name in self._given:
            if name.startswith("kafka.") or name in allowed or name in SPARKS:
                continue
            if name in BATCH_READ | STREAM_READ | WRITE:
                raise ConfigError(f"option {name} is not for {doing}")
            raise ConfigError(
                f"there is no option {name!r}{_similar(name, allowed)}; there are "
                f"{', '.join(sorted(allowed))} and kafka.*"
            )

    def text(self, name: str) -> str | None:
        """Return the text of an option without spaces around it, or None if there is none."""
        text = self._given.get(name)
        return None if text is None or not text.strip() else text.strip()

    def needed(self, name: str) -> str:
        """Return the text of an option, or raise ConfigError if it is not given."""
        found = self.text(name)
        if found is None:
            raise ConfigError(f"option {name} is needed")
        return found

    def number(self, name: str, least: int = 0) -> int | None:
        """Return the whole number of an option, at least `minimum`, or None if it is not given."""
        text = self.text(name)
        return None if text is None else whole(name, text, least)

    def flag(self, name: str) -> bool:
        """Return whether an option is `true`; it is false if it is not given."""
        match (self.text(name) or "false").lower():
            case "true":
                return True
            case "false":
                return False
            case other:
                raise ConfigError(f"option {name} can't be {other!r}: it takes true or false")

    def choice(self, name: str, kind: type[E]) -> E | None:
        """Return the member of `choices` that an option names, or None if it is not given."""
        text = self.text(name)
        if text is None:
            return None
        for each in kind:
            if each.value.lower() == text.lower():
                return each
        raise ConfigError(
            f"option {name} can't be {text!r}: it takes {', '.join(each.value for each in kind)}"
        )

    def access(self) -> Access:
        """Return the access to the brokers of `bootstrap_servers` with the options `kafka.*`."""
        kafka = {
            name.removeprefix("kafka."): text
            for name, text in self._given.items()
            if name.startswith("kafka.")
        }
        for name in kafka:
            if name in _SET_HERE:
                raise ConfigError(f"option kafka.{name} is given as {_SET_HERE[name]}")
            if name in FORCED_SETTINGS:
                raise ConfigError(f"option kafka.{name} can't be set: exact reading needs its own")
        return Access(self.needed("bootstrap_servers"), kafka)


def whole(name: str, text: str, least: int = 0) -> int:
    """Parse a whole number of at least `minimum`, or raise ConfigError with the option's name."""
    try:
        found = int(text)
    except ValueError:
        found = least - 1
    if found < least:
        raise ConfigError(
            f"option {name} can't be {text!r}: it takes a whole number from {least} on"
        )
    return found


def _limits(options: Given) -> Limits:
    partitions = options.text("partitions")
    cut = options.text("cut")
    return Limits(
        partitions=None if partitions is None else _numbers(partitions),
        offsets_from=offsets(options, "offsets_from", "earliest"),
        offsets_to=offsets(options, "offsets_to", "latest"),
        timestamps_from=_times(options, "timestamps_from"),
        timestamps_to=_times(options, "timestamps_to"),
        cut=None if cut is None else _cut(cut),
    )


def offsets(options: Given, name: str, default: At) -> At | dict[int, At]:
    """Parse offsets, `earliest` or `latest`: one for all partitions, or JSON of one for each."""
    text = options.text(name)
    if text is None:
        return default
    if text.startswith("{"):
        return {p: _at(name, each) for p, each in _by_partition(name, text).items()}
    return _at(name, text)


def _at(name: str, text: str) -> At:
    match text.lower():
        case "earliest":
            return "earliest"
        case "latest":
            return "latest"
    if not text.isdecimal():
        raise ConfigError(
            f"option {name} can't be {text!r}: it takes an offset, earliest, latest, or JSON of "
            'one for each partition, as {"0": 5, "1": "latest"}'
        )
    return int(text)


def _times(options: Given, name: str) -> int | dict[int, int] | None:
    text = options.text(name)
    if text is None:
        return None
    if text.startswith("{"):
        return {p: _time_ms(name, each) for p, each in _by_partition(name, text).items()}
    return _time_ms(name, text)


def _time_ms(name: str, text: str) -> int:
    """Parse a time into ms since 1970; one without a zone is UTC."""
    if text.isdecimal():
        return int(text)
    refusal = ConfigError(
        f"option {name} can't be {text!r}: it takes ms since 1970, a time as "
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


def _by_partition(name: str, text: str) -> dict[int, str]:
    try:
        found = orjson.loads(text)
        return {whole(name, number): str(each) for number, each in found.items()}
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"option {name} can't be {text!r}: as JSON, {error}") from None


def _numbers(text: str) -> tuple[int, ...]:
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


def _cut(text: str) -> Cut:
    """Load a cut that is given as JSON or as the path of a file."""
    return Cut.from_json(text) if text.startswith("{") else Cut.load(Path(text))


def _similar(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f": did you mean {close[0]!r}?" if close else ""
