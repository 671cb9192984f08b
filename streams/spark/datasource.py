"""The data source `millrace`: what Spark asks, handed to those who answer."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource


class MillraceDataSource(DataSource):
    """`spark.dataSource.register(MillraceDataSource)`; then `spark.read.format("millrace")`."""

    @classmethod
    def name(cls) -> str:
        return "millrace"
