"""Spark checks the books: changelogs, offsets and outputs of an application as DataFrames.

    MillraceDataSource   `spark.read.format("millrace")`, streams and writes too (docs/spark.md)
    read_cut, Cut        one exact moment of a running application
    reconcile            whether the stream's answer is the batch answer, record by record

pyspark is asked for when something that needs it is: a cut can be read without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streams.spark.cut import Cut

if TYPE_CHECKING:
    from streams.spark.datasource import MillraceDataSource
    from streams.spark.reconciling import reconcile
    from streams.spark.taking import read_cut

__all__ = ["Cut", "MillraceDataSource", "read_cut", "reconcile"]

_LAZY = {
    "read_cut": "streams.spark.taking",
    "MillraceDataSource": "streams.spark.datasource",
    "reconcile": "streams.spark.reconciling",
}
"""What needs pyspark or a coordinator's connection, and the module it is in."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
