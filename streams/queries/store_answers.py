"""Hold what one or several workers answer to a read of a store, and merge the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from streams.graph.nodes import StoreSpec
from streams.queries.committed_reads import Position
from streams.queries.store_reads import StoreRead, StoreRow, merge_rows


class StoreAnswer(NamedTuple):
    """Holds the rows of one or several workers, and what is known about them.

    `partitions` are those that were read, `position` what the store had taken in of their inputs,
    `age_s` the seconds for which something newer may have been committed elsewhere. With `has_more`
    there are more rows than the limit. `lag` is how many offsets of its changelog a standby that
    has answered was behind, None if that is not known; 0 where all were active.
    """

    rows: Sequence[StoreRow]
    has_more: bool
    position: Position
    partitions: frozenset[int]
    age_s: float
    lag: int | None = 0


def merge_answers(spec: StoreSpec, answers: Sequence[StoreAnswer], read: StoreRead) -> StoreAnswer:
    """Return the answers of different partitions as one."""
    if len(answers) == 1:
        return answers[0]
    rows, has_more = merge_rows(spec, [each.rows for each in answers], read)
    lags = [each.lag for each in answers if each.partitions]
    return StoreAnswer(
        rows,
        has_more or any(each.has_more for each in answers),
        {p: offset for each in answers for p, offset in each.position.items()},
        frozenset[int]().union(*(each.partitions for each in answers)),
        max((each.age_s for each in answers), default=0.0),
        None if None in lags else max((lag or 0 for lag in lags), default=0),
    )
