"""Turn what the user's `expected` function returns into accounts with rows of bytes."""

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
    """Call `expected` and return an account for each target that it answers for.

    One DataFrame is meant for the targets with these `names`, or for the only ones that there are;
    a dict has one for each name.

    Raises: ConfigError for anything else, and where the target is not clear.
    """
    answer = expected(inputs)
    if isinstance(answer, DataFrame):
        selected = chosen(places, names) if names else only(places)
        return [(place, _account(place, answer)) for place in selected]
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
    """Return the application's only store with the topic of its rows, or its only topic.

    Raises: ConfigError if there are more.
    """
    public = [place for place in places if not place.internal]
    stores = [place for place in public if place.kind is Kind.STORE]
    topics = [place for place in public if place.kind is not Kind.STORE]
    if len(stores) == 1 and all(topic.store == stores[0].name for topic in topics):
        return public
    if not stores and len(topics) == 1:
        return topics
    raise ConfigError(
        f"the application has {', '.join(place.name for place in public) or 'no store or topic'}: "
        "name the one that expected is of (accounts=['name']), or let expected return a dict of "
        "DataFrames by these names"
    )


def _account(place: Place, frame: DataFrame) -> Account:
    """Serialize a user's DataFrame with the application's serdes as the account of a target."""
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
    """Return the columns of windows' starts and ends in ms, null for targets without windows."""
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
    """Raise ConfigError if the user's DataFrame lacks a column."""
    if name not in frame.columns:
        raise ConfigError(
            f"what is expected of {place.name!r} needs a column {name!r}: it has "
            f"{', '.join(frame.columns)}"
        )


def _ms(frame: DataFrame, name: str) -> Column:
    """Convert a column of TIMESTAMP to ms since 1970; BIGINT is taken as such a number.

    Raises: ConfigError for other types.
    """
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
