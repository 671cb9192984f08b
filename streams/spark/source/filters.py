"""Narrow a read by the filters on partition, offset and timestamp that Spark pushes down.

Spark refuses to start a reader that takes filters while `spark.sql.python.filterPushdown.enabled`
is off, as it is by default, and tells a data source nothing of its session's conf. But the process
that asks for the reader is known: the planner that hands filters on runs as a process of its own,
and only where push-down is on.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from streams.common.topic_partitions import Partition
from streams.runtime.clients import Admin
from streams.spark.source.range_planning import find_offsets_since
from streams.spark.source.ranges import OffsetRange

MustFilterRows: TypeAlias = bool

_PLANNER_MODULE = "pyspark.sql.worker.data_source_pushdown_filters"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARISONS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


def runs_in_pushdown_planner() -> bool:
    """Return whether this process is the Python planner in which Spark pushes filters down."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PLANNER_MODULE in sys.modules or (spec is not None and spec.name == _PLANNER_MODULE)


@dataclass(frozen=True, slots=True)
class FilterBounds:
    """Represents the bounds on partitions, offsets and times that pushed filters set for a read.

    `first` and `until` are offsets of every partition; `since_ms` is a timestamp in ms since 1970.
    """

    partitions: tuple[Filter, ...] = ()
    first: int = 0
    until: int = sys.maxsize
    since_ms: int | None = None

    def prune_ranges(self, admin: Admin, ranges: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
        """Yield those parts of offset ranges in which a row may match the filters.

        For a bound of the timestamp brokers are asked for offsets by time.
        """
        left = [
            each
            for each in ranges
            if all(_matches_partition(condition, each.partition) for condition in self.partitions)
        ]
        places = [Partition(each.topic, each.partition) for each in left]
        not_before = find_offsets_since(admin, places, self.since_ms)
        for each, place in zip(left, places, strict=True):
            first = max(each.first, self.first, not_before.get(place, 0))
            until = min(each.until, self.until)
            if first < until:
                yield replace(each, first=first, until=until)

    def narrow_by_filter(self, condition: Filter) -> tuple[FilterBounds, MustFilterRows]:
        """Return the bounds narrowed by a filter, and whether Spark must still apply it to rows."""
        match condition:
            case IsNotNull(("partition",) | ("offset",) | ("timestamp",) | ("topic",)):
                return self, False
            case Not(EqualTo(("partition",), int())):
                return replace(self, partitions=(*self.partitions, condition)), False
            # NOT IN a list with a null is never true, so lists with a null are left to Spark.
            case In(("partition",), values) | Not(In(("partition",), values)) if all(
                isinstance(each, int) for each in values
            ):
                return replace(self, partitions=(*self.partitions, condition)), False
        if type(condition) not in _COMPARISONS:
            return self, True
        attribute, value = condition.attribute, condition.value  # type: ignore[attr-defined]
        match attribute, value:
            case ("partition",), int():
                return replace(self, partitions=(*self.partitions, condition)), False
            case ("offset",), int():
                return self._narrow_by_offset(condition, value), False
            case ("timestamp",), datetime():
                return self._narrow_by_time(condition, value), True
        return self, True

    def _narrow_by_offset(self, condition: Filter, value: int) -> FilterBounds:
        """Return the bounds narrowed by a comparison of the offset with `value`."""
        first, until = value, value + 1
        match condition:
            case GreaterThan():
                first, until = value + 1, sys.maxsize
            case GreaterThanOrEqual():
                until = sys.maxsize
            case LessThan():
                first, until = 0, value
            case LessThanOrEqual():
                first = 0
        return replace(self, first=max(self.first, first), until=min(self.until, until))

    def _narrow_by_time(self, condition: Filter, value: datetime) -> FilterBounds:
        """Return the bounds, with a later `since_ms` if the filter is a lower bound of timestamps.

        An upper bound narrows nothing: records are in no order of time, so that behind one which is
        too late there may be one which is not. A lower bound before 1970 narrows nothing either:
        no offset is known by it, and records without a time (-1) are behind it.
        """
        if isinstance(condition, LessThan | LessThanOrEqual):
            return self
        at = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        since_ms = (at - _EPOCH) // timedelta(milliseconds=1)
        if since_ms < 0:
            return self
        return replace(self, since_ms=max(self.since_ms or 0, since_ms))


def _matches_partition(condition: Filter, partition_number: int) -> bool:
    """Return whether a partition number satisfies a filter on the column `partition`."""
    match condition:
        case Not(child):
            return not _matches_partition(child, partition_number)
        case In(_, values):
            return partition_number in values
        case _:
            return _COMPARISONS[type(condition)](partition_number, condition.value)  # type: ignore[attr-defined]
