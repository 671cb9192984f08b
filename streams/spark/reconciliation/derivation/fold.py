"""Fold the values of each key, and of each of its windows, into one by the user's functions.

The rows come in any order but together: those of a key and window one after the other. It is not
the application's own operator that folds here; only the user's functions are the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from streams.errors import StreamsError
from streams.operators.folding import WindowFold
from streams.serdes import Serde
from streams.spark.reconciliation.derivation.row_schemas import (
    BATCH_ROWS_MAX,
    OutputRow,
    drain_into_batches,
)

FOLDED_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("window_start", pa.int64()),
        ("window_end", pa.int64()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("partition", pa.int32()),
    ]
)

_VALUE, _TIMESTAMP, _PARTITION = map(FOLDED_SCHEMA.names.index, ("value", "timestamp", "partition"))


def fold_rows(
    work: tuple[str, WindowFold, Serde[Any], Serde[Any]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Fold batches of rows into a row of FOLDED_SCHEMA for each key and window.

    The rows have the columns of FOLDED_SCHEMA, their values pickled, and are sorted by key and
    window. `work`: the step's name, its folding, and the serdes of key and value.
    """
    step, folding, key_serde, value_serde = work
    rows = (row for batch in batches for row in zip(*_iterate_columns_as_lists(batch), strict=True))
    output_rows: list[OutputRow] = []
    for (key, start_ms, end_ms), of_window in groupby(rows, itemgetter(0, 1, 2)):
        first = next(of_window)
        latest_ms, partition = first[_TIMESTAMP], first[_PARTITION]
        decoded_key, aggregate = key_serde.deserialize(key), folding.initializer()
        for row in chain([first], of_window):
            aggregate = _fold_value(step, folding, decoded_key, row[_VALUE], aggregate)
            latest_ms = max(latest_ms, row[_TIMESTAMP])
        value = value_serde.serialize(aggregate)
        output_rows.append((key, start_ms, end_ms, value, latest_ms, partition))
        if len(output_rows) == BATCH_ROWS_MAX:
            yield from drain_into_batches(output_rows, FOLDED_SCHEMA)
    yield from drain_into_batches(output_rows, FOLDED_SCHEMA)


def _iterate_columns_as_lists(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    """Iterate over the columns of FOLDED_SCHEMA as lists."""
    return (batch.column(name).to_pylist() for name in FOLDED_SCHEMA.names)


def _fold_value(
    step: str, folding: WindowFold, key: Any, pickled: bytes | None, aggregate: Any
) -> Any:
    """Fold a pickled value into the aggregate of its key and window, and return the new one.

    Raises: StreamsError if the user's function fails or returns None.
    """
    value = None if pickled is None else pickle.loads(pickled)  # nosec B301 # by this same job
    try:
        aggregate = folding.fold(key, value, aggregate)
    except Exception as error:
        raise StreamsError(
            f"step {step!r} can't fold {value!r:.200} into key {key!r:.200} in Spark: {error!r}"
        ) from error
    if aggregate is None:
        raise StreamsError(
            f"step {step!r} is declared commutative=True, and its function returned None for key "
            f"{key!r:.200}: what is deleted on the way depends on the order. Leave commutative out"
        )
    return aggregate
