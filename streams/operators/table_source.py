"""Table source: each record is the new value of its key, and one without a value deletes it.

Records without a key are dropped and counted. What arrives out of order counts as newer all the
same, unless the table is versioned (KTableSource).
"""

from __future__ import annotations

from typing import Any

from streams.operators.copies import copier_into
from streams.operators.keeping import keeper
from streams.topology.nodes import Binding, Emit, Operator
from streams.topology.views import View


def table_source(view: View) -> Operator:
    def bind(at: Binding) -> Emit:
        context, failed = at.context, at.failed
        if view.spec is None:
            return _not_kept(at)
        keep = keeper(at, view)
        own = copier_into(view.spec)

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None:
                context.dropped += 1
                return
            try:
                mine = own(value)
            except Exception as error:
                failed(error, key, value)
                return
            keep(key, mine, timestamp_ms)

        return process

    return bind


def _not_kept(at: Binding) -> Emit:
    context, downstream = at.context, at.downstream

    def process(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped += 1
            return
        downstream(key, value, None, timestamp_ms, True)

    return process
