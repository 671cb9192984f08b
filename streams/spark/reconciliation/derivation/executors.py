"""Run a function over the rows of a DataFrame on Spark's executors, with the work that it needs.

The work is pickled, with the user's functions in it. Functions that a module has by name travel as
that name, and the executor imports the module; all others (lambdas, closures, what `__main__`
defines) travel as they are.

`DataFrame.mapInArrow` wants pandas to be installed, which it makes no use of (PySpark 4.3): so
`map_on_executors` does what that does, but for asking (docs/decisions/0025).
"""

from __future__ import annotations

import io
import pickle
import struct
from collections import ChainMap
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.udf import _create_udf
from pyspark.util import PythonEvalType

from streams.errors import UserError

RowFunction = Callable[[Any, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Yields the batches that are made of those of a partition; the first argument is the work."""


def map_on_executors(
    frame: DataFrame, row_function: RowFunction, work: object, schema: pa.Schema | StructType
) -> DataFrame:
    """Return a DataFrame of the batches that `row_function` yields for each partition.

    `schema` is that of these batches. Raises UserError if the work can't be sent.
    """
    pickled = pickle_for_executors(work)

    def run_on_executor(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = pickle.loads(pickled)  # nosec B301 # the driver has pickled it
        return row_function(work, batches)

    udf: Any = _create_udf(
        run_on_executor,
        returnType=schema if isinstance(schema, StructType) else from_arrow_schema(schema),
        evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
    )
    column = udf(*(frame[name] for name in frame.columns))
    mapped_frame: Any = frame
    return DataFrame(mapped_frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


def pickle_for_executors(value: object) -> bytes:
    """Pickle a value for executors.

    Raises UserError if it holds what only this process has: a lock, a socket, an open file.
    """
    buffer = io.BytesIO()
    try:
        pickler: Any = _Pickler(buffer)  # type: ignore[no-untyped-call]
        pickler.dump(value)
    except Exception as error:
        raise UserError(f"it can't be sent to Spark's executors: {error}") from error
    return buffer.getvalue()


def _reduce_struct(layout: struct.Struct) -> tuple[Any, ...]:
    """Reduce a struct to its format, so that it can be pickled."""
    return struct.Struct, (layout.format,)


_DISPATCH_TABLE: ChainMap[Any, Any] = ChainMap(
    {struct.Struct: _reduce_struct}, cloudpickle.Pickler.dispatch_table
)


class _Pickler(cloudpickle.Pickler):
    """Pickles values with the `struct.Struct` objects that serdes have and that pickle refuses."""

    dispatch_table = _DISPATCH_TABLE
