"""Turn a table's updates into records, each with the new value."""

from __future__ import annotations

from typing import Any

from streams.graph.nodes import Binding, ForwardUpdate


def forward_as_records(binding: Binding) -> ForwardUpdate:
    """Return a function that forwards the new value of each update as a record."""
    downstream = binding.downstream

    def forward_record(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        downstream(key, new, timestamp_ms)

    return forward_record
