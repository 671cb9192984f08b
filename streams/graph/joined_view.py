"""Define the view of a join: a table computed from two others, unless a store was named.

Rules: KTableKTableAbstractJoinValueGetterSupplier and the getters of KTableKTableInnerJoin,
KTableKTableLeftJoin and KTableKTableOuterJoin; KTableKTableJoinMerger. What is joined of two
versioned tables is not versioned (KIP-914).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from state.entry import ValueAndTimestamp
from streams.graph.nodes import Binding, StoreSpec
from streams.graph.views import OptionalRow, RowGetter, StoredView, TableView

ValueJoiner = Callable[[Any, Any], Any]
"""Left value, right value -> the joined value; None means no row. One of the two may be None,
depending on the kind of join."""


class JoinKind(Enum):
    """Names the kinds of joins by which values must exist: (the left one, the right one)."""

    INNER = (True, True)
    LEFT = (True, False)
    OUTER = (False, False)

    @property
    def needs_left(self) -> bool:
        """Return whether a result needs a left value."""
        return self.value[0]

    @property
    def needs_right(self) -> bool:
        """Return whether a result needs a right value."""
        return self.value[1]


class JoinedView(StoredView):
    """Looks up rows of the join of `left` and `right`."""

    def __init__(
        self,
        kind: JoinKind,
        left: TableView,
        right: TableView,
        joiner: ValueJoiner,
        spec: StoreSpec | None,
    ) -> None:
        self.spec = spec
        self.sends_old_values = False
        self._kind = kind
        self._left = left
        self._right = right
        self._joiner = joiner

    def enable_sending_old_values(self, *, force: bool = True) -> bool:
        """Make every update carry the old value; materialize both sides, whatever `force` is.

        An old result is joined of an old value.
        """
        self._left.enable_sending_old_values()
        self._right.enable_sending_old_values()
        return super().enable_sending_old_values()

    def require_readable_stores(self) -> list[str]:
        """Return the join's store, or without one the stores that both sides' look-ups need."""
        if self.spec is not None:
            return super().require_readable_stores()
        return list(
            dict.fromkeys(
                [*self._left.require_readable_stores(), *self._right.require_readable_stores()]
            )
        )

    def create_row_getter(self, binding: Binding) -> RowGetter:
        """Return the function that looks a row up, in the store or joined from both sides."""
        if self.spec is not None:
            return super().create_row_getter(binding)
        get_left, get_right, joiner = (
            self._left.create_row_getter(binding),
            self._right.create_row_getter(binding),
            self._joiner,
        )
        needs_left, needs_right = self._kind.value

        def join_row(key: Any) -> OptionalRow:
            left = get_left(key)
            if left is None and needs_left:
                return None
            right = get_right(key)
            if right is None:
                if left is None or needs_right:
                    return None
                value, timestamp_ms = joiner(left.value, None), left.timestamp_ms
            elif left is None:
                value, timestamp_ms = joiner(None, right.value), right.timestamp_ms
            else:
                value = joiner(left.value, right.value)
                timestamp_ms = max(left.timestamp_ms, right.timestamp_ms)
            return None if value is None else ValueAndTimestamp(value, timestamp_ms)

        return join_row
