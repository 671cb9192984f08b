"""Turn an update of a table into changes of the groups of its old and its new row.

The changes are written to a repartition topic (KTableRepartitionMap). The selector chooses a row's
group, so an update may move a row from one group to another: that is two records, the one that
removes it first. Within one group it is one record with both values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streams.common.changes import Change
from streams.graph.nodes import Binding, ForwardUpdate, Operator
from streams.graph.views import TableView
from streams.operators.copies import return_unchanged
from streams.serdes import Serde

GroupKey: TypeAlias = Any
GroupValue: TypeAlias = Any

Selector = Callable[[Any, Any], "tuple[Any, Any] | None"]
"""Takes key and value of a row; returns key and value in its group, or None for no group."""

_EXACT = frozenset((str, bytes, int))
"""Types whose values are equal if, and only if, their bytes are."""


def create_group_changes(
    parent: TableView, selector: Selector, group_key_serde: Serde[Any]
) -> Operator:
    """Return the operator that forwards a table's updates as changes of groups.

    Two group keys of equal bytes are one group. A row whose new key or new value is None is in no
    group.
    """
    # With a schema registry bytes depend on the topic: keys are compared, and not their bytes.
    serialize = group_key_serde.serialize if group_key_serde.binder is None else return_unchanged

    def are_same_group(one: Any, other: Any) -> bool:
        if type(one) is type(other) and type(one) in _EXACT:
            return bool(one == other)
        return one is other or serialize(one) == serialize(other)

    def select_group(key: Any, value: Any) -> tuple[GroupKey, GroupValue]:
        pair = None if value is None else selector(key, value)
        if pair is None:
            return None, None
        group_key, group_value = pair
        return (
            (None, None) if group_key is None or group_value is None else (group_key, group_value)
        )

    def bind_operator(binding: Binding) -> ForwardUpdate:
        downstream, failed = binding.downstream, binding.skip_record_or_raise
        versioned = parent.is_versioned

        def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if versioned and not latest:
                return  # an aggregate has the latest rows only (KIP-914)
            try:
                into, added = select_group(key, new)
                out_of, removed = select_group(key, old)
                stays = added is not None and removed is not None and are_same_group(out_of, into)
            except Exception as error:
                failed(error, key, new)
                return
            if stays:
                downstream(into, Change(added, removed), timestamp_ms)
                return
            if removed is not None:
                downstream(out_of, Change(None, removed), timestamp_ms)
            if added is not None:
                downstream(into, Change(added, None), timestamp_ms)

        return process_update

    return bind_operator
