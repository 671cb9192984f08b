"""Export what programs with PySpark need: cuts, the data source and reconciliation.

Each name is imported when it is first used: a cut can be read without pyspark.
"""

from typing import TYPE_CHECKING, Any

import streams.spark as _spark

if TYPE_CHECKING:
    from streams.spark import (
        Cut,
        MillraceDataSource,
        exported,
        options_for,
        read_cut,
        reconcile,
    )

__all__ = ["Cut", "MillraceDataSource", "exported", "options_for", "read_cut", "reconcile"]

if not TYPE_CHECKING:  # else every name would be one, of type Any

    def __getattr__(name: str) -> Any:
        """Return a public name of `streams.spark`, imported when it is first used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(_spark, name)


def __dir__() -> list[str]:
    """Return the public names, sorted."""
    return sorted(__all__)
