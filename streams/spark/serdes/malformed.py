"""Handle values that a serde can't read as Spark's parse modes do: fail, drop or make null.

    PERMISSIVE       the column is null, and `_corrupt_record` says what was wrong
    DROPMALFORMED    the row is left out
    FAILFAST         the read fails, with the row and what to do

Only a batch that has such a value is looked at row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from streams.errors import UserError
from streams.spark.serdes.decoding import ColumnDecoder
from streams.spark.source.options import ParseMode

ArrowArray: TypeAlias = Any
CauseByRow: TypeAlias = dict[int, str]

_SHOWN_BYTES = 32


def decode_column(
    decoder: ColumnDecoder, values: Sequence[bytes | None]
) -> tuple[ArrowArray, CauseByRow]:
    """Decode a column to an array, and return it with the cause for each unreadable row.

    Such a row is null in the array.
    """
    try:
        return decoder.decode_many(values), {}
    except Exception:  # Whatever a serde raises, each value is then tried by itself.
        read: list[Any] = []
        causes: dict[int, str] = {}
    for row, value in enumerate(values):
        found = None
        if value is not None:
            try:
                found = decoder.decode_one(value)
                pa.array([found], decoder.arrow_type)
            except Exception as error:
                # A cause may quote half a surrogate pair, which no column of text can hold.
                cause = f"{type(error).__name__}: {error}".encode(errors="backslashreplace")
                found, causes[row] = None, cause.decode()
        read.append(found)
    return pa.array(read, decoder.arrow_type), causes


class MalformedRows:
    """Collects the unreadable rows of one batch, and handles them as the parse mode says."""

    def __init__(self, mode: ParseMode, topic: str, partition: int, offsets: Sequence[int]) -> None:
        self._mode = mode
        self._topic = topic
        self._partition = partition
        self._offsets = offsets
        self._descriptions: dict[int, list[str]] = {}

    def add_causes(
        self, column: str, serde: str, causes: Mapping[int, str], values: Sequence[bytes | None]
    ) -> None:
        """Record why values of a column can't be read. Raises UserError in mode FAILFAST.

        `serde`: its name, for the text; `values`: the bytes of all rows.
        """
        for row, cause in causes.items():
            value = values[row] or b""
            text = (
                f"{column} of {self._topic}[{self._partition}] offset {self._offsets[row]} is no "
                f"{serde}: {cause}; its {len(value)} bytes begin {value[:_SHOWN_BYTES].hex(' ')}"
            )
            if self._mode is ParseMode.FAILFAST:
                raise UserError(
                    f"{text}. Give the serde that it was written with (options {column} and "
                    f"{column}_schema), or mode=PERMISSIVE, which makes it null and tells it in "
                    "_corrupt_record, or mode=DROPMALFORMED, which leaves it out"
                )
            self._descriptions.setdefault(row, []).append(text)

    def build_corrupt_record_column(self) -> Any:
        """Return the column `_corrupt_record`: a text for malformed rows, null for the others."""
        texts: list[str | None] = [None] * len(self._offsets)
        for row, found in self._descriptions.items():
            texts[row] = "; ".join(found)
        return pa.array(texts, pa.string())

    def build_mask_if_malformed_are_dropped(self) -> Any | None:
        """Return an Arrow array of booleans with the rows that the mode keeps; None if all."""
        if self._mode is not ParseMode.DROPMALFORMED or not self._descriptions:
            return None
        return pa.array([row not in self._descriptions for row in range(len(self._offsets))])
