"""Table group: an update of a table becomes changes of the groups that its old and its new row are
in, to be written to a repartition topic (KTableRepartitionMap).

A row goes to a group of its own choice, so an update may take it out of one and put it into
two records, the one that takes it out first. Within one group it is one record with both values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.operators.copies import as_it_is
from streams.serdes import Serde
from streams.topology.changes import Change
from streams.topology.nodes import Binding, Operator, Update
from streams.topology.views import View

Selector = Callable[[Any, Any], "tuple[Any, Any] | None"]
"""Key, value of a row -> key and value in its group; None: it is in none."""

_EXACT = frozenset((str, bytes, int))
"""Types whose values are equal if, and only if, their bytes are."""


def change_groups(parent: View, selector: Selector, key: Serde[Any]) -> Operator:
    """`key` is the serde of the groups' keys: two keys of equal bytes are one group's. A row whose
    new key or new value is None is in no group."""
    # Where bytes are a topic's, with a schema of its own, keys are compared and not their bytes.
    serialize = key.serialize if key.binder is None else as_it_is

    def same(one: Any, other: Any) -> bool:
        if type(one) is type(other) and type(one) in _EXACT:
            return bool(one == other)
        return one is other or serialize(one) == serialize(other)

    def selected(key: Any, value: Any) -> tuple[Any, Any]:
        pair = None if value is None else selector(key, value)
        if pair is None:
            return None, None
        group, part = pair
        return (None, None) if group is None or part is None else (group, part)

    def bind(at: Binding) -> Update:
        downstream, failed = at.downstream, at.failed
        versioned = parent.is_versioned

        def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            if versioned and not latest:
                return  # an aggregate is of the latest rows (KIP-914)
            try:
                into, added = selected(key, new)
                out_of, removed = selected(key, old)
                stays = added is not None and removed is not None and same(out_of, into)
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

        return process

    return bind
