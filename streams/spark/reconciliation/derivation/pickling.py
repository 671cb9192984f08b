"""Pickle steps, with the user's functions in them, for Spark's executors.

Functions that a module has by name travel as that name, and the executor imports the module; all
others (lambdas, closures, what `__main__` defines) travel as they are.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections import ChainMap
from typing import Any

from pyspark import cloudpickle

from streams.errors import UserError


class NotPicklable(UserError):
    """Signals that a value holds what only this process has: a lock, a socket, an open file."""


def pickle_for_executors(value: object) -> bytes:
    """Pickle a value for executors. Raises NotPicklable if it can't be sent."""
    buffer = io.BytesIO()
    try:
        pickler: Any = _Pickler(buffer)  # type: ignore[no-untyped-call]
        pickler.dump(value)
    except Exception as error:
        raise NotPicklable(f"it can't be sent to Spark's executors: {error}") from error
    return buffer.getvalue()


def unpickle_on_executor(data: bytes) -> Any:
    """Unpickle what `pickle_for_executors` has returned."""
    return pickle.loads(data)  # the driver of this application has pickled it


def _reduce_struct(layout: struct.Struct) -> tuple[Any, ...]:
    """Reduce a struct to its format, so that it can be pickled."""
    return struct.Struct, (layout.format,)


_DISPATCH_TABLE: ChainMap[Any, Any] = ChainMap(
    {struct.Struct: _reduce_struct}, cloudpickle.Pickler.dispatch_table
)


class _Pickler(cloudpickle.Pickler):
    """Pickles values with the `struct.Struct` objects that serdes have and that pickle refuses."""

    dispatch_table = _DISPATCH_TABLE
