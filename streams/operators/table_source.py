"""Take each record of a topic as the new value of its key; one without a value deletes it.

Records without a key are dropped and counted. A record that arrives out of order counts as newer
all the same, unless the table is versioned (KTableSource).
"""

from __future__ import annotations

from typing import Any

from streams.operators.copies import copier_into
from streams.operators.keeping import keeper
from streams.topology.nodes import Binding, Emit, Operator
from streams.topology.views import View


def table_source(view: View) -> Operator:
    """Return the operator that turns a topic's records into a table's updates."""

    def bind_operator(binding: Binding) -> Emit:
        context, failed = binding.context, binding.failed
        if view.spec is None:
            return _not_kept(binding)
        write_value = keeper(binding, view)
        copy_value = copier_into(view.spec)

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None:
                context.dropped += 1
                return
            try:
                own_value = copy_value(value)
            except Exception as error:
                failed(error, key, value)
                return
            write_value(key, own_value, timestamp_ms)

        return process_record

    return bind_operator


def _not_kept(at: Binding) -> Emit:
    """Return a function that forwards records as updates of a table without a store."""
    context, downstream = at.context, at.downstream

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped += 1
            return
        downstream(key, value, None, timestamp_ms, True)

    return process_record
