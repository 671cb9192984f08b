"""Convert what the user's `expected` function returns to expected rows of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.types import LongType, TimestampNTZType, TimestampType

from streams.errors import ConfigError
from streams.spark.reconciliation.accounts import Account, AccountKind
from streams.spark.reconciliation.serde_columns import to_bytes_column
from streams.spark.reconciliation.targets import ReconciliationTarget, select_targets

if TYPE_CHECKING:
    from pyspark.sql import Column

    from streams.spark.reconciliation.inputs import Inputs

StartColumn: TypeAlias = "Column"
EndColumn: TypeAlias = "Column"

ExpectedFunction = Callable[["Inputs"], "DataFrame | Mapping[str, DataFrame]"]
"""What is expected of the inputs: `key`, `value`, of windows `window_start` (and `window_end` of
sessions), and `timestamp` where it is to be compared. One DataFrame, or one for each name."""

_COLUMNS = ("key", "window_start", "window_end", "value", "timestamp")


def compute_expected_accounts(
    expected: ExpectedFunction,
    inputs: Inputs,
    targets: Sequence[ReconciliationTarget],
    names: Sequence[str] | None,
) -> list[Account]:
    """Call `expected`, and return a store's or topic's expected rows for each it returns.

    One DataFrame is meant for the targets with these `names`, or for the only ones that there are;
    a dict has one for each name.

    Raises: ConfigError for anything else, and where the target is not clear.
    """
    answer = expected(inputs)
    if isinstance(answer, DataFrame):
        selected = (
            select_targets(targets, names) if names else require_only_account_targets(targets)
        )
        return [_to_account(place, answer) for place in selected]
    if not isinstance(answer, Mapping) or not answer:
        raise ConfigError(
            f"expected returns a DataFrame, or one for each store or topic: {answer!r:.100} is "
            "neither"
        )
    for name, frame in answer.items():
        if not isinstance(frame, DataFrame):
            raise ConfigError(f"expected returns {frame!r:.100} for {name!r}: it is no DataFrame")
    wanted = [name for name in answer if not names or name in names]
    return [_to_account(place, answer[place.name]) for place in select_targets(targets, wanted)]


def require_only_account_targets(
    targets: Sequence[ReconciliationTarget],
) -> list[ReconciliationTarget]:
    """Return the only store, with the topic that has its rows, or else the only topic.

    Raises: ConfigError if there are more.
    """
    public = [place for place in targets if not place.is_internal]
    stores = [place for place in public if place.kind is AccountKind.STORE]
    topics = [place for place in public if place.kind is not AccountKind.STORE]
    if len(stores) == 1 and all(topic.store == stores[0].name for topic in topics):
        return public
    if not stores and len(topics) == 1:
        return topics
    raise ConfigError(
        f"the application has {', '.join(place.name for place in public) or 'no store or topic'}: "
        "name the one that expected is of (accounts=['name']), or let expected return a dict of "
        "DataFrames by these names"
    )


def _to_account(target: ReconciliationTarget, answer: DataFrame) -> Account:
    """Serialize a user's DataFrame to the expected rows of a store or topic."""
    for name in ("key", "value"):
        _require_column(target, answer, name)
    kinds = {field.name: field.dataType for field in answer.schema.fields}
    start, end = _select_window_columns(target, answer)
    times = "timestamp" in kinds
    rows = answer.select(
        to_bytes_column(F.col("key"), kinds["key"], target.key_serde, "key").alias("key"),
        start.cast("BIGINT").alias("window_start"),
        end.cast("BIGINT").alias("window_end"),
        to_bytes_column(F.col("value"), kinds["value"], target.value_serde, "value").alias("value"),
        (_convert_to_ms(answer, "timestamp") if times else F.lit(None))
        .cast("BIGINT")
        .alias("timestamp"),
    )
    return Account(
        name=target.name,
        kind=target.kind,
        subtopology=target.subtopology,
        method="by the function given",
        expected=rows,
        compares_timestamps=times,
    )


def _select_window_columns(
    target: ReconciliationTarget, answer: DataFrame
) -> tuple[StartColumn, EndColumn]:
    """Return the columns with window start and end in ms, null for targets without windows."""
    if target.windowed is None:
        return F.lit(None), F.lit(None)
    _require_column(target, answer, "window_start")
    start = _convert_to_ms(answer, "window_start")
    if "window_end" in answer.columns:
        return start, _convert_to_ms(answer, "window_end")
    if target.windowed == "time" and target.window_size_ms is not None:
        return start, start + F.lit(target.window_size_ms)
    _require_column(target, answer, "window_end")
    raise AssertionError("it was needed")


def _require_column(target: ReconciliationTarget, answer: DataFrame, column_name: str) -> None:
    """Raise ConfigError if the user's DataFrame lacks a column."""
    if column_name not in answer.columns:
        raise ConfigError(
            f"what is expected of {target.name!r} needs a column {column_name!r}: it has "
            f"{', '.join(answer.columns)}"
        )


def _convert_to_ms(frame: DataFrame, column_name: str) -> Column:
    """Convert a TIMESTAMP column to ms since 1970; a BIGINT column is taken to be in ms already.

    Raises: ConfigError for other types.
    """
    kind: Any = frame.schema[column_name].dataType
    if isinstance(kind, TimestampType):
        return F.unix_millis(column_name)
    if isinstance(kind, TimestampNTZType):
        return F.unix_millis(F.col(column_name).cast("TIMESTAMP"))
    if isinstance(kind, LongType):
        return F.col(column_name)
    raise ConfigError(
        f"column {column_name!r} is of type {kind.simpleString()}: a TIMESTAMP is needed, or "
        "BIGINT in ms since 1970"
    )
