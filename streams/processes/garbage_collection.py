"""Let Python's garbage collector run less often in a process that runs an application."""

from __future__ import annotations

import gc

_ALLOCATIONS = 20_000
"""The allocations, less the deallocations, from which the youngest objects are looked at."""


def raise_collection_threshold() -> None:
    """Raise the collector's first threshold, unless it is higher or the collector is off.

    A transaction keeps an object for each record until its commit. With Python's threshold, 700,
    the collector looks through them again and again and finds nothing that it could free:
    reference counts free what a record leaves.
    """
    first, second, third = gc.get_threshold()
    if 0 < first < _ALLOCATIONS:
        gc.set_threshold(_ALLOCATIONS, second, third)
