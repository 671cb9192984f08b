"""Define the options of the data source as dataclasses, and parse them from texts.

The table of docs/spark.md is the contract. An option is a field of a dataclass: its type says how
its text is parsed. Option names have no case, as in Spark.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from streams.errors import ConfigError
from streams.runtime.clients.range_reader import FORCED_SETTINGS
from streams.spark.cuts.cut import Cut
from streams.spark.source.broker_access import BrokerAccess, create_access
from streams.spark.source.option_texts import (
    Count,
    OffsetLimits,
    OptionParser,
    PartitionNumbers,
    PositiveCount,
    TimeLimits,
    create_choice_parser,
    parse_boolean,
)
from streams.spark.source.registry_access import RegistryAccess, create_registry_access

RECORDS_PER_SPLIT = 500_000

SPARK_OPTIONS = {"checkpointlocation", "queryname"}
"""Options of Spark's own, which it hands on together with those of a source."""

_ADDRESS_OPTION, _REGISTRY_OPTION = "bootstrap_servers", "schema_registry"
_PREFIXES = ("kafka.", f"{_REGISTRY_OPTION}.")
_DEDICATED_OPTIONS = {"bootstrap.servers": _ADDRESS_OPTION, "isolation.level": "isolation"}
_FORBIDDEN_WRITE_SETTINGS = {
    "transactional.id": "it is made of the query's id, or of write_id, and the Spark partition",
    "enable.idempotence": "the guarantee needs it",
    "acks": "the guarantee needs all",
    "request.required.acks": "the guarantee needs all",
    "partitioner": "records of a key must meet in one partition, by Kafka's own hash",
}
"""Settings of librdkafka that would break the guarantee of a write, and why."""


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


class TimeFormat(StrEnum):
    """Says whether columns have times as TIMESTAMP, or as numbers of ms since 1970."""

    TIMESTAMP = "timestamp"
    MS = "ms"


class IsolationLevel(StrEnum):
    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class ChangedRowsPolicy(StrEnum):
    """Says what to do if an epoch that was already written is attempted again with other rows."""

    FAIL = "fail"
    SKIP = "skip"


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
    schema_registry: RegistryAccess | None = None
    windowed: WindowedKeyKind | None = None
    window_size_ms: PositiveCount | None = None
    mode: ParseMode = ParseMode.PERMISSIVE
    headers: bool = False
    times: TimeFormat = TimeFormat.TIMESTAMP


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReadLimits:
    """Describes which partitions, offsets and times of a topic a read is limited to.

    A mapping is by partition; what it leaves out has no limit. Times in ms since 1970. Ends are
    exclusive.
    """

    partitions: PartitionNumbers | None = None
    offsets_from: OffsetLimits = "earliest"
    offsets_to: OffsetLimits = "latest"
    timestamps_from: TimeLimits | None = None
    timestamps_to: TimeLimits | None = None
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
    retention_ms: Count | None = None
    serdes: SerdeOptions = SerdeOptions()
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    limits: TopicReadLimits = TopicReadLimits()
    records_per_split: PositiveCount = RECORDS_PER_SPLIT


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReadOptions:
    """Holds the options of a streaming read; a new query begins at `offsets_from`."""

    access: BrokerAccess
    topic: str
    serdes: SerdeOptions = SerdeOptions()
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    offsets_from: OffsetLimits = "earliest"
    max_records_per_trigger: PositiveCount | None = None
    records_per_split: PositiveCount = RECORDS_PER_SPLIT


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Holds the options of a batch or streaming write; only a batch write has a `write_id`."""

    access: BrokerAccess
    topic: str
    serdes: SerdeOptions = SerdeOptions()
    write_id: str | None = None
    on_changed_rows: ChangedRowsPolicy = ChangedRowsPolicy.FAIL


def parse_read_options(
    option_texts: Mapping[str, str], *, allows_streaming: bool = False
) -> ReadOptions:
    """Parse the options of a batch read.

    `allows_streaming`: options of a streaming read may be there too; they are checked and not used:
    when Spark asks for the columns it doesn't say for which kind of read. Raises ConfigError.
    """
    names = _BATCH_READ_OPTIONS.keys() | (_STREAM_READ_OPTIONS.keys() if allows_streaming else ())
    found: ReadOptions = _parse_options(ReadOptions, option_texts, names, "a batch read")
    topic, application_id, store = found.topic, found.application_id, found.store
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
    if store is None and found.content is ReadContent.CHANGELOG:
        raise ConfigError("option content=changelog is of a store: give application_id and store")
    if store is None and found.versioned is not VersionedRead.NO:
        raise ConfigError("option versioned is of a store: give application_id and store")
    times = (found.limits.timestamps_from, found.limits.timestamps_to)
    if found.content is ReadContent.COVERAGE and times != (None, None):
        raise ConfigError("content=coverage counts offsets: limit it by offsets, not by times")
    _check_serdes(found.serdes)
    return found


def parse_stream_read_options(option_texts: Mapping[str, str]) -> StreamReadOptions:
    """Parse the options of a streaming read. Raises ConfigError."""
    found: StreamReadOptions = _parse_options(
        StreamReadOptions, option_texts, _STREAM_READ_OPTIONS, "a streaming read"
    )
    _check_serdes(found.serdes)
    return found


def parse_write_options(option_texts: Mapping[str, str], *, is_stream: bool) -> WriteOptions:
    """Parse the options of a write. Raises ConfigError."""
    names = _WRITE_OPTIONS.keys() - ({"write_id"} if is_stream else set())
    operation = "a streaming write" if is_stream else "a write"
    found: WriteOptions = _parse_options(WriteOptions, option_texts, names, operation)
    for name in found.access.librdkafka_settings:
        if name in _FORBIDDEN_WRITE_SETTINGS:
            raise ConfigError(
                f"option kafka.{name} can't be set: {_FORBIDDEN_WRITE_SETTINGS[name]}"
            )
    _check_serdes(found.serdes, is_write=True)
    return found


def _accept_any_text(option_name: str, text: str) -> str:
    return text


def _load_cut(option_name: str, text: str) -> Cut:
    """Load a cut that is given as JSON or as the path of a file."""
    return Cut.from_json(text) if text.startswith("{") else Cut.load(Path(text))


_PARSERS: Mapping[type, OptionParser] = {
    str: _accept_any_text,
    bool: parse_boolean,
    Cut: _load_cut,
    RegistryAccess: lambda _, url: create_registry_access(url, {}),
}


def _find_parser(kind: Any) -> OptionParser:
    """Return the parser of a field's type, which may be one with None."""
    kind = next((each for each in get_args(kind) if NoneType in get_args(kind)), kind)
    if get_origin(kind) is Annotated:
        parse: OptionParser = kind.__metadata__[0]
        return parse
    return create_choice_parser(kind) if issubclass(kind, StrEnum) else _PARSERS[kind]


def _list_options(options_class: Any) -> dict[str, OptionParser]:
    """Return the parsers of the options of a class by name, those of classes in it too."""
    found: dict[str, OptionParser] = {}
    for name, kind in get_type_hints(options_class, include_extras=True).items():
        if name == "access":
            found[_ADDRESS_OPTION] = _accept_any_text
        elif is_dataclass(kind) and kind is not Cut:
            found |= _list_options(kind)
        else:
            found[name] = _find_parser(kind)
    return found


_BATCH_READ_OPTIONS = _list_options(ReadOptions)
_STREAM_READ_OPTIONS = _list_options(StreamReadOptions)
_WRITE_OPTIONS = {
    name: parse
    for name, parse in _list_options(WriteOptions).items()
    if name not in ("windowed", "window_size_ms", "mode", "times")
}
_ALL_OPTIONS = _BATCH_READ_OPTIONS | _STREAM_READ_OPTIONS | _WRITE_OPTIONS


def _parse_options(
    options_class: Any,
    option_texts: Mapping[str, str],
    allowed_names: Collection[str],
    operation: str,
) -> Any:
    """Parse the options of one operation, which `operation` says in words for messages.

    Raises ConfigError for a name that is not allowed, and for a text that is not what it should be.
    """
    given = {name.lower(): text for name, text in option_texts.items()}
    for name in given:
        if name.startswith(_PREFIXES) or name in SPARK_OPTIONS or name in allowed_names:
            continue
        if name in _ALL_OPTIONS:
            raise ConfigError(f"option {name} is not for {operation}")
        close = difflib.get_close_matches(name, allowed_names, n=1)
        similar = f": did you mean {close[0]!r}?" if close else ""
        raise ConfigError(
            f"there is no option {name!r}{similar}; there are "
            f"{', '.join(sorted(allowed_names))}, kafka.* and schema_registry.*"
        )
    texts = {name: text.strip() for name, text in given.items() if text.strip()}
    values = {n: _ALL_OPTIONS[n](n, text) for n, text in texts.items() if n in _ALL_OPTIONS}
    kafka, registry = (_select_settings(given, prefix) for prefix in _PREFIXES)
    if registry:
        if _REGISTRY_OPTION not in values:
            raise ConfigError(f"option {_REGISTRY_OPTION}, the registry's URL, is needed")
        values[_REGISTRY_OPTION] = create_registry_access(texts[_REGISTRY_OPTION], registry)
    return _create_options(options_class, values, _create_access(values, kafka))


def _select_settings(option_texts: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the settings whose option names have a prefix, without it.

    They stay as they are: a password may be empty, or end in a space.
    """
    return {
        name.removeprefix(prefix): text
        for name, text in option_texts.items()
        if name.startswith(prefix)
    }


def _create_options(
    options_class: Any, values: Mapping[str, Any], access: BrokerAccess | None = None
) -> Any:
    """Create the options of a class from parsed values.

    Raises ConfigError for one that is needed and missing.
    """
    found: dict[str, Any] = {} if access is None else {"access": access}
    for each in fields(options_class):
        if each.name in values:
            found[each.name] = values[each.name]
        elif is_dataclass(each.default):
            found[each.name] = _create_options(type(each.default), values)
        elif each.default is MISSING and each.name not in found:
            raise ConfigError(f"option {each.name} is needed")
    return options_class(**found)


def _create_access(values: Mapping[str, Any], settings: Mapping[str, str]) -> BrokerAccess:
    """Return the access to the brokers of `bootstrap_servers` with settings of librdkafka.

    Raises ConfigError for a setting that is not the user's to choose.
    """
    for name in settings:
        if name in _DEDICATED_OPTIONS:
            raise ConfigError(f"option kafka.{name} is given as {_DEDICATED_OPTIONS[name]}")
        if name in FORCED_SETTINGS:
            raise ConfigError(f"option kafka.{name} can't be set: exact reading needs its own")
    if _ADDRESS_OPTION not in values:
        raise ConfigError(f"option {_ADDRESS_OPTION} is needed")
    return create_access(values[_ADDRESS_OPTION], settings)


def _check_serdes(serdes: SerdeOptions, *, is_write: bool = False) -> None:
    """Raise ConfigError for serdes without what they need; a write of JSON needs no schema."""
    for name, serde, schema in (
        ("key", serdes.key, serdes.key_schema),
        ("value", serdes.value, serdes.value_schema),
    ):
        if schema is not None and serde not in (SerdeName.JSON, SerdeName.AVRO):
            raise ConfigError(
                f"option {name}_schema is of {name}=json or avro: {name} is {serde.value}"
            )
        if schema is None and serde is SerdeName.JSON and not is_write:
            raise ConfigError(
                f"option {name}=json needs {name}_schema, a Spark schema such as 'id INT, at DATE'"
            )
        if serde is SerdeName.AVRO and serdes.schema_registry is None:
            raise ConfigError(f"option {name}=avro needs schema_registry, the registry's URL")
    if serdes.windowed is WindowedKeyKind.TIME and serdes.window_size_ms is None:
        raise ConfigError("option windowed=time needs window_size_ms: the keys hold no ends")
    if serdes.windowed is not WindowedKeyKind.TIME and serdes.window_size_ms is not None:
        raise ConfigError("option window_size_ms is of windowed=time")
