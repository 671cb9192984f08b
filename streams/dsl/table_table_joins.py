"""Join two tables by key."""

from __future__ import annotations

from typing import Any

from streams.dsl.function_checks import check_callable
from streams.dsl.join_keys import check_join_keys
from streams.dsl.routing import check_same_application
from streams.dsl.table import TABLE_STORE_KINDS, Table, refuse_expiring_rows
from streams.errors import TopologyError
from streams.graph.joined_view import JoinedView, JoinKind, ValueJoiner
from streams.graph.materialized import Store
from streams.graph.nodes import Node, Operator
from streams.graph.step_traits import StepTraits
from streams.operators.table_join import join_updates, merge_join_results, swap_joiner_arguments
from streams.serdes import Serde


def join_tables(
    kind: JoinKind,
    left: Table[Any, Any],
    right: Table[Any, Any],
    joiner: ValueJoiner,
    *,
    value: Serde[Any] | None,
    store: str | Store | None,
    name: str | None,
) -> Table[Any, Any]:
    """Return the join of `left` and `right`: a step for the updates of each, and one that merges.

    Both tables are materialized, since each is asked for its values. Raises TopologyError naming
    the step.
    """
    builder, graph = left._builder, left._builder.graph
    step = graph.choose_step_name("KTABLE-MERGE", name)
    check_callable(step, joiner, ("value", "other_value"))
    _check_joinable(step, left, right)
    check_join_keys(step, left._key, right._key)
    for table in (left, right):
        refuse_expiring_rows(step, table, "joined rows")
    spec = None
    if store is not None:
        spec = builder.declare_own_store(store, step, left._key, value, kinds=TABLE_STORE_KINDS)
    if not kind.needs_right:  # old values tell whether there is a result to delete
        left._view.enable_sending_old_values()
    if not kind.needs_left:
        right._view.enable_sending_old_values()
    view = JoinedView(kind, left._view, right._view, joiner, spec)

    def add_side(own: Table[Any, Any], other: Table[Any, Any], which: str, bound: Operator) -> Node:
        given = None if name is None else f"{name}-join-{which}"
        return builder.add_step(
            f"KTABLE-JOIN{which.upper()}",
            own._node,
            bound,
            name=given,
            stores=other._view.require_readable_stores(),
            emits_updates=True,
            traits=StepTraits(computes_rows=True, joins_tables=True),
        )

    needs_left, needs_right = kind.needs_left, kind.needs_right
    of_left = join_updates(view, left._view, right._view, joiner,
                           needs_own=needs_left, needs_other=needs_right)  # fmt: skip
    of_right = join_updates(view, right._view, left._view, swap_joiner_arguments(joiner),
                            needs_own=needs_right, needs_other=needs_left)  # fmt: skip
    sides = (add_side(left, right, "this", of_left), add_side(right, left, "other", of_right))
    merged = builder.add_step(
        "KTABLE-MERGE",
        sides,
        merge_join_results(view),
        name=step,
        stores=[] if spec is None else [spec.name],
        emits_updates=True,
        traits=StepTraits(computes_rows=True),
    )
    graph.copartitioned.append((left._node, right._node))
    return Table(builder, merged, left._key, value if spec is None else spec.value, view)


def _check_joinable(step: str, left: Table[Any, Any], right: object) -> None:
    """Raise TopologyError if `right` is no table of the application of `left`."""
    if not isinstance(right, Table):
        raise TopologyError(f"step {step!r} joins a table with another one, not with {right!r}")
    check_same_application(step, left, right)
