"""Shipping: steps, with the user's functions in them, as bytes that an executor can load.

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
    """Something holds what only this process has: a lock, a socket, an open file."""


def shipped(what: object) -> bytes:
    """`what` for executors. Raises NotShippable."""
    buffer = io.BytesIO()
    try:
        pickler: Any = _Pickler(buffer)  # type: ignore[no-untyped-call]
        pickler.dump(what)
    except Exception as error:
        raise NotShippable(f"it can't be sent to Spark's executors: {error}") from error
    return buffer.getvalue()


def landed(data: bytes) -> Any:
    """What was shipped."""
    return pickle.loads(data)  # our own bytes, of this very application


def _struct(layout: struct.Struct) -> tuple[Any, ...]:
    return struct.Struct, (layout.format,)


_TABLE: ChainMap[Any, Any] = ChainMap({struct.Struct: _struct}, cloudpickle.Pickler.dispatch_table)


class _Pickler(cloudpickle.Pickler):
    """With the layouts of numbers, which serdes have and pickle refuses."""

    dispatch_table = _TABLE
