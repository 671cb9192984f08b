"""Apply a function to the Arrow batches of each partition of a DataFrame, without pandas.

`DataFrame.mapInArrow` wants pandas to be installed, which it makes no use of (PySpark 4.3): so this
does what that does, but for asking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.udf import _create_udf
from pyspark.util import PythonEvalType

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, batch_function: BatchFunction, schema_ddl: str) -> DataFrame:
    """Return a DataFrame of the batches that `batch_function` yields for each partition.

    `schema_ddl` is the schema of these batches.
    """
    udf: Any = _create_udf(
        batch_function, returnType=schema_ddl, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = udf(*(frame[name] for name in frame.columns))
    mapped_frame: Any = frame
    return DataFrame(mapped_frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)
