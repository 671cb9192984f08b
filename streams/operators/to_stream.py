"""To stream: a table's updates become records, each with the new value."""

from __future__ import annotations

from typing import Any

from streams.topology.nodes import Binding, Update


def to_stream(at: Binding) -> Update:
    downstream = at.downstream

    def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        downstream(key, new, timestamp_ms)

    return process
