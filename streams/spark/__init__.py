"""Read, write and reconcile the topics and stores of an application with PySpark.

    MillraceDataSource   `spark.read.format("millrace")`, streams and writes too (docs/spark.md)
    read_cut, Cut        a consistent cut: one exact moment of a running application
    reconcile            compare the stream's answer with the batch answer, record by record
    options_for          the options by which a store of an App is read
    exported             the rows that the complete exports of `millrace export` hold

Start reading at `datasource`, then `source` and `cuts`. pyspark is imported when
something that needs it is: a cut can be read without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streams.spark.cuts.cut import Cut

if TYPE_CHECKING:
    from streams.spark.cuts.taking import read_cut
    from streams.spark.datasource import MillraceDataSource
    from streams.spark.exporting.export import exported
    from streams.spark.reconciliation.reconcile import reconcile
    from streams.spark.stores.store_options import options_for

__all__ = ["Cut", "MillraceDataSource", "exported", "options_for", "read_cut", "reconcile"]

_LAZY = {
    "exported": "streams.spark.exporting.export",
    "options_for": "streams.spark.stores.store_options",
    "read_cut": "streams.spark.cuts.taking",
    "MillraceDataSource": "streams.spark.datasource",
    "reconcile": "streams.spark.reconciliation.reconcile",
}
"""The module of each name that needs pyspark or a connection to a coordinator."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
