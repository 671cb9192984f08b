"""Results held back: with caching the result of a key goes downstream once a commit.

They go in the order in which the keys were changed last, each as the result of the record that
changed it: with its headers, and its origin in messages (CachingKeyValueStore, NamedCache).
"""

from __future__ import annotations

from typing import Any

from state.entry import Entry
from streams.operators.copies import Copied
from streams.topology.nodes import Binding
from streams.topology.views import View

Held = dict[Entry[Any, Any], Any]
"""The entries that have changed, each with the message that changed it: to note a change, take the
entry out if it is there, and put it in again, at the end."""


def held_back(
    at: Binding, store: Any, view: View, emitted: Copied, *, at_end: bool = False
) -> Held:
    """What the operator notes its changes in. What was noted goes downstream at the commit, as
    updates with the values that the entries of `store` have then, and their timestamps: or with
    `at_end` those of the ends of their windows. Steps that share a store share what is noted."""
    context, downstream = at.context, at.downstream
    noted = context.held.get(store.name)
    if noted is not None:
        return noted
    held: Held = {}
    context.held[store.name] = held
    sends_old, before = view.sends_old, store.before

    def flush() -> None:
        for entry, message in held.items():
            new = entry.value
            old = before(entry) if sends_old or new is None else None
            if new is None and old is None:
                continue  # came and went since the last commit: nobody has seen it
            context.message = message
            time_ms = entry.key.end_ms if at_end else entry.timestamp_ms
            downstream(entry.key, emitted(new), old if sends_old else None, time_ms, True)
        held.clear()
        context.message = None

    context.flushers.append(flush)
    return held
