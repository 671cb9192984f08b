"""Table-table join: an update of one side is joined with what the other has of the same key.

With caching that is what the other has passed on last: where both sides change between two commits,
each change is joined on its own, and none is lost (docs/decisions/0022).

Each side has an operator of its own, and a merge behind both keeps the results where a store was
named. A result's timestamp is the later of the two values'. Updates of a versioned table that are
out of order are dropped (KTableKTableInnerJoin, -LeftJoin, -RightJoin, -OuterJoin,
KTableKTableJoinMerger, KIP-914).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streams.operators.keeping import update_keeper
from streams.topology.joined_view import JoinedView, Joiner
from streams.topology.nodes import Binding, Operator, Update
from streams.topology.views import View


def join_updates(
    view: JoinedView,
    own: View,
    other: View,
    joiner: Joiner,
    *,
    needs_own: bool,
    needs_other: bool,
) -> Operator:
    """The side whose updates are `own`'s. `joiner` takes its value first."""

    def bind(at: Binding) -> Update:
        context, downstream, failed = at.context, at.downstream, at.failed
        of_other = other.get(replace(at, passed_on=True))
        sends_old, versioned = view.sends_old, own.is_versioned

        def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if versioned and not latest:
                context.dropped += 1
                return
            try:
                found = of_other(key)
                if found is None:
                    if needs_other or (new is None and old is None):
                        return
                    theirs, alone = None, False
                else:
                    theirs, found_ms = found
                    if found_ms > timestamp_ms:
                        timestamp_ms = found_ms
                    alone = not needs_own  # what the other side has is a result by itself
                value = joiner(new, theirs) if alone or new is not None else None
                was = joiner(old, theirs) if sends_old and (alone or old is not None) else None
            except Exception as error:
                failed(error, key, new)
                return
            downstream(key, value, was, timestamp_ms, latest)

        return process

    return bind


def merge_joined(view: JoinedView) -> Operator:
    def bind(at: Binding) -> Update:
        return at.downstream if view.spec is None else update_keeper(at, view)

    return bind


def swapped(joiner: Joiner) -> Joiner:
    """For the right side, whose own value is the joiner's second."""

    def joined(right: Any, left: Any) -> Any:
        return joiner(left, right)

    return joined
