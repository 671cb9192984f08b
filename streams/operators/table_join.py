"""Join an update of one table with the other table's value of the same key.

With caching that is the value that the other side has emitted last: where both sides change between
two commits, each change is joined on its own, and none is lost (docs/decisions/0022).

Each side has an operator of its own, and a merge of both materializes the results where a store was
named. A result's timestamp is the later of the two values'. Updates of a versioned table that are
out of order are dropped (KTableKTableInnerJoin, -LeftJoin, -RightJoin, -OuterJoin,
KTableKTableJoinMerger, KIP-914).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streams.graph.joined_view import JoinedView, ValueJoiner
from streams.graph.nodes import Binding, ForwardUpdate, Operator
from streams.graph.views import TableView
from streams.operators.materialize import create_update_materializer


def join_updates(
    view: JoinedView,
    own_view: TableView,
    other_view: TableView,
    joiner: ValueJoiner,
    *,
    needs_own: bool,
    needs_other: bool,
) -> Operator:
    """Return the operator that joins one side's updates; `joiner` takes that side's value first."""

    def bind_operator(binding: Binding) -> ForwardUpdate:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        get_other = other_view.create_row_getter(replace(binding, reads_emitted_values=True))
        sends_old, versioned = view.sends_old_values, own_view.is_versioned

        def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if versioned and not latest:
                context.dropped_count += 1
                return
            try:
                found = get_other(key)
                if found is None:
                    if needs_other or (new is None and old is None):
                        return
                    other_value, other_is_result = None, False
                else:
                    other_value, other_ms = found
                    if other_ms > timestamp_ms:
                        timestamp_ms = other_ms
                    other_is_result = not needs_own  # the other side's value is a result by itself
                result = joiner(new, other_value) if other_is_result or new is not None else None
                old_result = (
                    joiner(old, other_value)
                    if sends_old and (other_is_result or old is not None)
                    else None
                )
            except Exception as error:
                failed(error, key, new)
                return
            downstream(key, result, old_result, timestamp_ms, latest)

        return process_update

    return bind_operator


def merge_join_results(view: JoinedView) -> Operator:
    """Return the operator that writes both sides' results to the store, if one was named."""

    def bind_operator(binding: Binding) -> ForwardUpdate:
        return (
            binding.downstream if view.spec is None else create_update_materializer(binding, view)
        )

    return bind_operator


def swap_joiner_arguments(joiner: ValueJoiner) -> ValueJoiner:
    """Return a joiner for the right side, whose own value is the second of `joiner`."""

    def join_swapped(right: Any, left: Any) -> Any:
        return joiner(left, right)

    return join_swapped
