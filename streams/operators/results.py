"""Forward a window's new value, at once or, with caching, at the commit.

Results of sessions have the end of their session as timestamp, and at once they go without headers,
which a result at the commit has from the record that made it. So it is in Kafka Streams
(KStreamSessionWindowAggregate, SessionCacheFlushListener).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.entry import SCALARS, Entry
from state.windowed import Windowed
from streams.operators.copies import Copied, keys_for_those_after
from streams.operators.held import held_back
from streams.processor.record import Rewritten
from streams.topology.nodes import Binding
from streams.topology.views import View

Result = Callable[[Entry[Windowed[Any], Any], Any, int], None]
"""Takes a window's entry, its old value where one is sent, and the result's timestamp in ms."""


def results(
    at: Binding, view: View, store: Any, emitted: Copied, *, sessions: bool = False
) -> Result:
    """Return a function that forwards a changed window of `store`, at once or at the commit."""
    assert view.spec is not None
    context, downstream, sends_old = at.context, at.downstream, view.sends_old
    if view.spec.caching:
        pending_results = held_back(at, store, view, emitted, at_end=sessions)

        def note_result(entry: Entry[Windowed[Any], Any], old_value: Any, time_ms: int) -> None:
            pending_results.pop(entry, None)
            pending_results[entry] = context.message

        return note_result

    own_key = keys_for_those_after(at, view.spec)

    def forward_result(entry: Entry[Windowed[Any], Any], old_value: Any, time_ms: int) -> None:
        window = entry.key
        if type(window.key) not in SCALARS:
            window = own_key(window)
        downstream(window, emitted(entry.value), old_value if sends_old else None, time_ms, True)

    def forward_without_headers(
        entry: Entry[Windowed[Any], Any], old_value: Any, time_ms: int
    ) -> None:
        message = context.message
        context.message = None if message is None else Rewritten(message, ())
        try:
            forward_result(entry, old_value, time_ms)
        finally:
            context.message = message

    return forward_without_headers if sessions else forward_result
