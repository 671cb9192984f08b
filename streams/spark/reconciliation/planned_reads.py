"""Read topics and stores with reads that this process plans, instead of Python planners of Spark.

For each `load()` of a data source in Python Spark starts two interpreters: one asks for the
columns, the other for the tasks. A reconciliation reads each store and each topic once, so for few
records these took much of its time. Readers, options and errors are the data source's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import InputPartition

from streams.errors import ConfigError, StreamsError, UserError
from streams.spark.datasource import create_reader
from streams.spark.reconciliation.derivation.executors import map_on_executors
from streams.spark.source.options import parse_read_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_as_planned_here(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return the DataFrame that `spark.read.format("millrace")` would load with the options.

    The offsets that are read are those of now, and not of the query.

    Raises: ConfigError, AuthenticationError or AuthorizationError as the data source does, and
    StreamsError for any other reason why nothing can be read.
    """
    try:
        reader = create_reader(parse_read_options(options))
        splits = [each.value for each in reader.partitions()]
    except (ConfigError, StreamsError):
        raise
    except UserError as error:  # as errors of Spark's planner are translated
        raise StreamsError(str(error)) from error
    numbers = _create_task_numbers(spark, len(splits))
    return map_on_executors(numbers, _read_splits, (reader, splits), reader.schema)


def _create_task_numbers(spark: SparkSession, count: int) -> DataFrame:
    """Return a DataFrame of `id`, from 0 on, with a partition for each.

    Spark takes a DataFrame made of an RDD for very large, as it does what a data source reads. Of
    `spark.range` it knows the size, would take all records that are read for as few, and so
    broadcast them in joins. The RDD is made of rows, and not of a range, which would be planned as
    a query of its own for each read.
    """
    session: Any = spark
    jvm, context = session._jvm, session.sparkContext
    rows = jvm.java.util.ArrayList()
    for number in range(count):
        values = context._gateway.new_array(jvm.java.lang.Object, 1)
        values[0] = number
        rows.add(jvm.org.apache.spark.sql.RowFactory.create(values))
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL("id INT NOT NULL")
    numbered = context._jsc.parallelize(rows, max(count, 1))
    return DataFrame(session._jsparkSession.createDataFrame(numbered, schema), spark)


def _read_splits(work: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the splits that the numbers of `batches` name; yield their record batches."""
    reader, splits = work
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from reader.read(InputPartition(splits[number]))
