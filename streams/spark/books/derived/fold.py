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
from streams.spark.books.derived.rows import Made, batches
from streams.spark.books.derived.shipping import landed

TAKEN = ("key", "window_start", "window_end", "value", "timestamp", "partition")
"""The columns that are read: the key's bytes, its window, the value pickled, and the partition."""
FOLDED = pa.schema(
    [
        ("key", pa.binary()),
        ("window_start", pa.int64()),
        ("window_end", pa.int64()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("partition", pa.int32()),
    ]
)
FOLDED_DDL = (
    "key BINARY, window_start BIGINT, window_end BIGINT, value BINARY, timestamp BIGINT, "
    "partition INT"
)


class Fold:
    """Folds rows of FOLD_COLUMNS into rows of FOLDED_SCHEMA: a function for `map_in_arrow`.

    `work`: the step's name, its Folding, and the serdes of key and value, pickled.
    """

    def __init__(self, work: bytes) -> None:
        self._work = work

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        step, folding, key_serde, value_serde = landed(self._work)
        folder = _Folder(step, folding, key_serde, value_serde)
        for batch in given:
            columns = (batch.column(name).to_pylist() for name in TAKEN)
            for row in zip(*columns, strict=True):
                folder.take(*row)
            yield from batches(folder.made, FOLDED)
        folder.end()
        yield from batches(folder.made, FOLDED)


class _Folder:
    """Folds the rows of one key and window after the other; `output_rows` are the results."""

    def __init__(
        self, step: str, folding: WindowFold, key_serde: Serde[Any], value_serde: Serde[Any]
    ) -> None:
        self.made: list[Made] = []
        self._step = step
        self._initializer, self._fold = folding.initializer, folding.fold
        self._deserialize = key_serde.deserialize
        self._serialize = value_serde.serialize
        self._at: tuple[bytes, int | None, int | None] | None = None
        self._key: Any = None
        self._so_far: Any = None
        self._latest_ms = -1
        self._partition = -1

    def take(
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
        if at != self._at:
            self.end()
            self._at, self._key, self._partition = at, self._deserialize(key), partition
            self._so_far, self._latest_ms = self._initializer(), timestamp_ms
        decoded = None if value is None else pickle.loads(value)
        try:
            self._so_far = self._fold(self._key, decoded, self._so_far)
        except Exception as error:
            raise StreamsError(
                f"step {self._step!r} can't fold {decoded!r:.200} into key {self._key!r:.200} in "
                f"Spark: {error!r}"
            ) from error
        if self._so_far is None:
            raise StreamsError(
                f"step {self._step!r} is declared commutative=True, and its function returned None "
                f"for key {self._key!r:.200}: what is deleted on the way depends on the order. "
                "Leave commutative out"
            )
        self._latest_ms = max(self._latest_ms, timestamp_ms)

    def end(self) -> None:
        """Add the result of the current key and window, which has no more rows."""
        if self._at is not None:
            value = self._serialize(self._so_far)
            self.made.append((*self._at, value, self._latest_ms, self._partition))
        self._at = None
