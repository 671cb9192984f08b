"""A user's own answer, as accounts: rows of bytes, as the application writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

from streams.errors import ConfigError
from streams.spark.books.accounts import Account, Kind
from streams.spark.books.encoded import bytes_of
from streams.spark.books.found import Place, chosen

if TYPE_CHECKING:
    from pyspark.sql import Column

    from streams.spark.books.inputs import Inputs

Expected = Callable[["Inputs"], "DataFrame | Mapping[str, DataFrame]"]
"""What is expected of the inputs: `key`, `value`, of windows `window_start` (and `window_end` of
sessions), and `timestamp` where it is to be compared. One DataFrame, or one for each name."""

_COLUMNS = ("key", "window_start", "window_end", "value", "timestamp")


def asked(
    expected: Expected, inputs: Inputs, places: Sequence[Place], names: Sequence[str] | None
) -> list[tuple[Place, Account]]:
    """Calls `expected`, and tells which account each DataFrame is of: those of `names`, or the only
    ones that there are. Raises ConfigError."""
    answer = expected(inputs)
    if isinstance(answer, DataFrame):
        meant = chosen(places, names) if names else only(places)
        return [(place, _account(place, answer)) for place in meant]
    if not isinstance(answer, Mapping) or not answer:
        raise ConfigError(
            f"expected returns a DataFrame, or one for each store or topic: {answer!r:.100} is "
            "neither"
        )
    for name, frame in answer.items():
        if not isinstance(frame, DataFrame):
            raise ConfigError(f"expected returns {frame!r:.100} for {name!r}: it is no DataFrame")
    wanted = [name for name in answer if not names or name in names]
    return [(place, _account(place, answer[place.name])) for place in chosen(places, wanted)]


def only(places: Sequence[Place]) -> list[Place]:
    """The application's one store and the topic that has its rows, or its one topic. Raises
    ConfigError where there are more."""
    there = [place for place in places if not place.internal]
    stores = [place for place in there if place.kind is Kind.STORE]
    topics = [place for place in there if place.kind is not Kind.STORE]
    if len(stores) == 1 and all(topic.store == stores[0].name for topic in topics):
        return there
    if not stores and len(topics) == 1:
        return topics
    raise ConfigError(
        f"the application has {', '.join(place.name for place in there) or 'no store or topic'}: "
        "name the one that expected is of (accounts=['name']), or let expected return a dict of "
        "DataFrames by these names"
    )


def _account(place: Place, frame: DataFrame) -> Account:
    for name in ("key", "value"):
        _needs(place, frame, name)
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    start, end = _windows(place, frame)
    times = "timestamp" in kinds
    rows = frame.select(
        bytes_of(F.col("key"), kinds["key"], place.key, "key").alias("key"),
        start.cast("BIGINT").alias("window_start"),
        end.cast("BIGINT").alias("window_end"),
        bytes_of(F.col("value"), kinds["value"], place.value, "value").alias("value"),
        (_ms(frame, "timestamp") if times else F.lit(None)).cast("BIGINT").alias("timestamp"),
    )
    return Account(
        name=place.name,
        kind=place.kind,
        subtopology=place.subtopology,
        how="by the function given",
        expected=rows,
        times=times,
    )


def _windows(place: Place, frame: DataFrame) -> tuple[Column, Column]:
    if place.windowed is None:
        return F.lit(None), F.lit(None)
    _needs(place, frame, "window_start")
    start = _ms(frame, "window_start")
    if "window_end" in frame.columns:
        return start, _ms(frame, "window_end")
    if place.windowed == "time" and place.window_size_ms is not None:
        return start, start + F.lit(place.window_size_ms)
    _needs(place, frame, "window_end")
    raise AssertionError("it was needed")


def _needs(place: Place, frame: DataFrame, name: str) -> None:
    if name not in frame.columns:
        raise ConfigError(
            f"what is expected of {place.name!r} needs a column {name!r}: it has "
            f"{', '.join(frame.columns)}"
        )


def _ms(frame: DataFrame, name: str) -> Column:
    """A time in ms since 1970: a TIMESTAMP or such a number."""
    kind: Any = frame.schema[name].dataType
    if isinstance(kind, TimestampType):
        return F.unix_millis(name)
    if isinstance(kind, TimestampNTZType):
        return F.unix_millis(F.col(name).cast("TIMESTAMP"))
    if isinstance(kind, LongType):
        return F.col(name)
    raise ConfigError(
        f"column {name!r} is of type {kind.simpleString()}: a TIMESTAMP is needed, or BIGINT in ms "
        "since 1970"
    )
