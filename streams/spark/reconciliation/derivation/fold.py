"""Fold the values of each key, and of each of its windows, into one by the user's functions.

The rows come in any order but together: those of a key and window one after the other. It is not
the application's own operator that folds here; only the user's functions are the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from streams.errors import StreamsError
from streams.operators.folding import WindowFold
from streams.serdes import Serde
from streams.spark.reconciliation.derivation.row_schemas import OutputRow, drain_into_batches

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


def fold_rows(
    work: tuple[str, WindowFold, Serde[Any], Serde[Any]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Fold batches of rows into a row of FOLDED_SCHEMA for each key and window.

    The rows have the columns of FOLDED_SCHEMA, their values pickled. `work`: the step's name, its
    folding, and the serdes of key and value.
    """
    folder = _RowFolder(*work)
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in FOLDED_SCHEMA.names)
        for row in zip(*columns, strict=True):
            folder.fold_row(*row)
        yield from drain_into_batches(folder.output_rows, FOLDED_SCHEMA)
    folder.finish_key()
    yield from drain_into_batches(folder.output_rows, FOLDED_SCHEMA)


class _RowFolder:
    """Folds rows sorted by key and window; `output_rows` has a result for each key and window."""

    def __init__(
        self, step: str, folding: WindowFold, key_serde: Serde[Any], value_serde: Serde[Any]
    ) -> None:
        self.output_rows: list[OutputRow] = []
        self._step = step
        self._initializer, self._fold = folding.initializer, folding.fold
        self._deserialize = key_serde.deserialize
        self._serialize = value_serde.serialize
        self._current_key: tuple[bytes, int | None, int | None] | None = None
        self._key: Any = None
        self._aggregate: Any = None
        self._latest_ms = -1
        self._partition = -1

    def fold_row(
        self,
        key: bytes,
        start_ms: int | None,
        end_ms: int | None,
        value: bytes | None,
        timestamp_ms: int,
        partition: int,
    ) -> None:
        """Fold one row into the aggregate of its key and window.

        Raises: StreamsError if the user's function fails or returns None.
        """
        at = key, start_ms, end_ms
        if at != self._current_key:
            self.finish_key()
            self._current_key, self._key, self._partition = at, self._deserialize(key), partition
            self._aggregate, self._latest_ms = self._initializer(), timestamp_ms
        decoded = None if value is None else pickle.loads(value)
        try:
            self._aggregate = self._fold(self._key, decoded, self._aggregate)
        except Exception as error:
            raise StreamsError(
                f"step {self._step!r} can't fold {decoded!r:.200} into key {self._key!r:.200} in "
                f"Spark: {error!r}"
            ) from error
        if self._aggregate is None:
            raise StreamsError(
                f"step {self._step!r} is declared commutative=True, and its function returned None "
                f"for key {self._key!r:.200}: what is deleted on the way depends on the order. "
                "Leave commutative out"
            )
        self._latest_ms = max(self._latest_ms, timestamp_ms)

    def finish_key(self) -> None:
        """Add the result of the current key and window, which has no more rows."""
        if self._current_key is not None:
            value = self._serialize(self._aggregate)
            self.output_rows.append((*self._current_key, value, self._latest_ms, self._partition))
        self._current_key = None
