"""Forward a window's new value, at once or, with caching, at the commit.

Results of sessions have the end of their session as timestamp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.entry import SCALARS, StoreEntry
from state.windowed import Windowed
from streams.graph.nodes import Binding
from streams.graph.views import TableView
from streams.operators.copies import CopyFunction, create_downstream_key_copier
from streams.operators.uncommitted_results import register_emit_at_commit

ForwardResult = Callable[[StoreEntry[Windowed[Any], Any], Any, int], None]
"""Takes a window's entry, its old value where one is sent, and the result's timestamp in ms."""


def create_result_forwarder(
    binding: Binding,
    view: TableView,
    store: Any,
    copy_value: CopyFunction,
    *,
    are_sessions: bool = False,
) -> ForwardResult:
    """Return a function that forwards a changed window of `store`, at once or at the commit."""
    assert view.spec is not None
    context, downstream, sends_old = binding.context, binding.downstream, view.sends_old_values
    if view.spec.caching:
        pending_results = register_emit_at_commit(
            binding, store, view, copy_value, timestamps_at_window_end=are_sessions
        )

        def note_result(
            entry: StoreEntry[Windowed[Any], Any], old_value: Any, time_ms: int
        ) -> None:
            pending_results.pop(entry, None)
            pending_results[entry] = context.message

        return note_result

    own_key = create_downstream_key_copier(binding, view.spec)

    def forward_result(entry: StoreEntry[Windowed[Any], Any], old_value: Any, time_ms: int) -> None:
        window = entry.key
        if type(window.key) not in SCALARS:
            window = own_key(window)
        downstream(window, copy_value(entry.value), old_value if sends_old else None, time_ms, True)

    return forward_result
