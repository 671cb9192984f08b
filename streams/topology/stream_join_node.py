"""Describe the join of two streams as one node, and expand it to the steps that run.

    left ---- this windowed ---- join this ----.
                  (writes this store, reads     merge
                   the other's)                /
    right --- other windowed --- join other --

It is one node until the topology is built, so that a stream joined with itself can become one step
with one store instead. Source: StreamStreamJoinNode.
"""

from __future__ import annotations

from dataclasses import dataclass

from streams.graph.nodes import Node, Operator, ProcessorNode
from streams.graph.step_traits import UNKNOWN_STEP, StepTraits
from streams.operators.lateness import OnLate
from streams.operators.outer_join import OuterJoinOptions, outer_join_side
from streams.operators.stream_join import (
    Joiner,
    JoinWindow,
    forward_and_store_join_record,
    forward_joined,
    join_side,
    join_with_itself,
)
from streams.serdes import Serde
from streams.topology.rules import StreamJoinRule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamJoinNode(Node):
    """Represents a join of two streams: its parents are the left and the right one.

    `names` are those of the steps that it becomes.
    """

    names: JoinStepNames
    joiner: Joiner
    """Key, left value, right value -> the joined value."""
    window: JoinWindow
    """The window as the left side sees it."""
    this_store: str
    other_store: str
    value: Serde[object]
    other_value: Serde[object]
    outer: OuterJoinOptions | None = None
    """What a left or an outer join needs beside; None for an inner one."""
    on_late: OnLate | None = None
    single_store: bool = False
    """Whether the two streams are one, which is kept once."""

    @property
    def is_self_join(self) -> bool:
        """Return whether a stream is joined with itself, by an inner join."""
        left, right = self.parents
        return left is right and self.outer is None


@dataclass(frozen=True, slots=True)
class JoinStepNames:
    """Holds the names of the steps that a join becomes."""

    this_windowed: str
    other_windowed: str
    this_join: str
    other_join: str
    merge: str


def expand_stream_join(node: StreamJoinNode) -> list[Node]:
    """Return the steps that run for a join, of which the last has the results."""
    if node.single_store:
        return _expand_self_join(node)
    left, right = node.parents
    names, joiner = node.names, node.joiner

    def reversed_joiner(key: object, value: object, other: object) -> object:
        return joiner(key, other, value)

    this, other = node.this_store, node.other_store
    # A stream joined with itself reports a late record once, on the left side.
    other_late = None if left is right else node.on_late
    shared = (node.outer.store_name,) if node.outer else ()
    if node.outer is None:
        this_side = join_side(other, node.window, joiner)
        other_side = join_side(this, node.window.reversed, reversed_joiner)
    else:
        this_side = outer_join_side(
            node.outer, is_left=True, this_store=this, other_store=other, value_serde=node.value
        )
        other_side = outer_join_side(
            node.outer,
            is_left=False,
            this_store=other,
            other_store=this,
            value_serde=node.other_value,
        )
    this_windowed = _create_step(
        names.this_windowed,
        "KSTREAM-WINDOWED",
        (left,),
        forward_and_store_join_record(this, node.on_late),
        this,
    )
    other_windowed = _create_step(
        names.other_windowed,
        "KSTREAM-WINDOWED",
        (right,),
        forward_and_store_join_record(other, other_late),
        other,
    )
    outer = node.outer
    kind = "KSTREAM-OUTERTHIS" if outer and outer.is_full_outer else "KSTREAM-JOINTHIS"
    rule = StreamJoinRule(
        step=names.this_join,
        joiner=joiner,
        window=node.window,
        this_store=this,
        other_store=other,
        emit_interval_ms=node.outer.emit_interval_ms if node.outer else None,
    )
    this_join = _create_step(
        names.this_join, kind, (this_windowed,), this_side, other, *shared, rule=rule
    )
    kind = "KSTREAM-OUTEROTHER" if outer else "KSTREAM-JOINOTHER"
    other_join = _create_step(
        names.other_join, kind, (other_windowed,), other_side, this, *shared, rule=rule
    )
    merge = _create_step(
        names.merge,
        "KSTREAM-MERGE",
        (this_join, other_join),
        forward_joined,
        rule=rule,
        traits=StepTraits(is_stateless=True, drops_records=False),
    )
    return [this_windowed, other_windowed, this_join, other_join, merge]


def _expand_self_join(node: StreamJoinNode) -> list[Node]:
    """Return the steps of a join of a stream with itself that share one store."""
    names, this = node.names, node.this_store
    windowed = _create_step(
        names.this_windowed,
        "KSTREAM-WINDOWED",
        node.parents[:1],
        forward_and_store_join_record(this),
        this,
    )
    join = join_with_itself(this, node.window, node.joiner)
    return [windowed, _create_step(names.merge, "KSTREAM-MERGE", (windowed,), join, this)]


def _create_step(
    name: str,
    kind: str,
    parents: tuple[Node, ...],
    operator: Operator,
    *stores: str,
    rule: StreamJoinRule | None = None,
    traits: StepTraits = UNKNOWN_STEP,
) -> Node:
    """Return a processor node with its stores."""
    return ProcessorNode(
        name=name,
        kind=kind,
        parents=parents,
        operator=operator,
        stores=stores,
        rule=rule,
        traits=traits,
    )
