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


class NotShippable(UserError):
    """Signals that something holds what only this process has: a lock, a socket, an open file."""


def shipped(what: object) -> bytes:
    """Pickle a value for executors. Raises NotPicklable if it can't be sent."""
    buffer = io.BytesIO()
    try:
        pickler: Any = _Pickler(buffer)  # type: ignore[no-untyped-call]
        pickler.dump(what)
    except Exception as error:
        raise NotShippable(f"it can't be sent to Spark's executors: {error}") from error
    return buffer.getvalue()


def landed(data: bytes) -> Any:
    """Unpickle what `pickle_for_executors` has returned."""
    return pickle.loads(data)  # the driver of this application has pickled it


def _struct(layout: struct.Struct) -> tuple[Any, ...]:
    """Reduce a struct to its format, so that it can be pickled."""
    return struct.Struct, (layout.format,)


_TABLE: ChainMap[Any, Any] = ChainMap({struct.Struct: _struct}, cloudpickle.Pickler.dispatch_table)


class _Pickler(cloudpickle.Pickler):
    """Pickles also the structs of numbers that serdes have and pickle refuses."""

    dispatch_table = _TABLE
