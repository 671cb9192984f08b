"""Define rules: what a step computes, as data, for programs that compute it another way.

An operator is a closure: it can be run, and not read. A program that recomputes an application from
its inputs (`streams.spark`) reads these instead. A step without a rule can only be run.
"""

from __future__ import annotations

from dataclasses import dataclass

from streams.operators.folding import WindowFold
from streams.operators.stream_join import Joiner, JoinWindow
from streams.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregationRule:
    """Says that a step folds the records of each key into one value of its store.

    With `windows` it is one value for each key and window. `commutative`: their order doesn't
    matter, as the user says (of a count it never does). `on_close`: each window is emitted once,
    when it has closed.
    """

    folding: WindowFold
    commutative: bool
    windows: Windows | None = None
    on_close: bool = False


@dataclass(frozen=True, slots=True)
class SuppressionRule:
    """Says that a step holds a table's updates back.

    `final_only`: only the last of each window is emitted, when it closes; otherwise what is emitted
    depends on when updates came.
    """

    final_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoinRule:
    """Says that a step joins two streams by key within a window of time.

    Each record of the left stream is joined with those of the right one that have its key and are
    in its `window`. `step`: what the join is called; `this_store` and `other_store` keep the left
    and the right stream. `emit_interval_ms`: of a left or an outer join, which joins with None too.
    """

    step: str
    joiner: Joiner
    """Key, left value, right value -> the joined value."""
    window: JoinWindow
    this_store: str
    other_store: str
    emit_interval_ms: int | None = None


StepRule = AggregationRule | SuppressionRule | StreamJoinRule
