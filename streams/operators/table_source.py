"""Take each record of a topic as the new value of its key; one without a value deletes it.

Records without a key are dropped and counted. A record that arrives out of order counts as newer
all the same, unless the table is versioned (KTableSource).
"""

from __future__ import annotations

from typing import Any

from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.graph.views import TableView
from streams.operators.copies import create_copier_into
from streams.operators.materialize import create_value_materializer


def read_table_updates(view: TableView) -> Operator:
    """Return the operator that turns a topic's records into a table's updates."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, failed = binding.context, binding.skip_record_or_raise
        if view.spec is None:
            return _create_forwarder_without_store(binding)
        write_value = create_value_materializer(binding, view)
        copy_value = create_copier_into(view.spec)

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None:
                context.dropped_count += 1
                return
            try:
                own_value = copy_value(value)
            except Exception as error:
                failed(error, key, value)
                return
            write_value(key, own_value, timestamp_ms)

        return process_record

    return bind_operator


def _create_forwarder_without_store(binding: Binding) -> ForwardRecord:
    """Return a function that forwards records as updates of a table without a store."""
    context, downstream = binding.context, binding.downstream

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped_count += 1
            return
        downstream(key, value, None, timestamp_ms, True)

    return process_record
