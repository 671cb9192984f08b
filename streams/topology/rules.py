"""Rules: what a step computes, said as data, for those who compute it another way.

An operator is a closure: it can be run, and not read. Who recomputes an application from its inputs
(`streams.spark`) reads these instead. A step without one can only be run.
"""

from __future__ import annotations

from dataclasses import dataclass

from streams.operators.folding import Folding
from streams.operators.stream_join import Joiner, JoinWindow
from streams.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregated:
    """The records of each key, and of each of `windows` where there are any, folded into one value
    of the step's store. `commutative`: their order doesn't matter, as the user says (of a count it
    never does). `on_close`: each window is passed on once, when it has closed."""

    folding: Folding
    commutative: bool
    windows: Windows | None = None
    on_close: bool = False


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A table's updates held back. `final`: only the last of each window goes on, when it closes;
    otherwise what goes on depends on when updates came."""

    final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsJoined:
    """Each record of the left stream with those of the right one that have its key and are in its
    `window`. `step`: what the join is called; `this_store` and `other_store` keep the left and the
    right stream. `emit_interval_ms`: of a left or an outer join, which joins with None too."""

    step: str
    joiner: Joiner
    """Key, left value, right value."""
    window: JoinWindow
    this_store: str
    other_store: str
    emit_interval_ms: int | None = None


Rule = Aggregated | HeldBack | StreamsJoined
