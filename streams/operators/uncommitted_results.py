"""Keep results until the commit: with caching a key's result goes downstream once a commit.

They go in the order in which the keys were changed last, each as the result of the record that
changed it: with its headers, and its origin in messages (CachingKeyValueStore, NamedCache).

A deletion of what was not there before the transaction goes to nobody. From a store with a `ttl` it
does go on: what has expired is in the store no more, and those downstream were not told.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from state.entry import StoreEntry
from streams.graph.nodes import Binding
from streams.graph.views import TableView
from streams.operators.copies import CopyFunction, create_downstream_key_copier

PendingResults = dict[StoreEntry[Any, Any], Any]
"""The entries that have changed, each with the message that changed it. To note a change, take the
entry out if it is there, and put it in again, at the end."""


_MESSAGE_BYTES = 500
_SAMPLE = 16


def estimate_messages_bytes(pending_results: PendingResults) -> int:
    """Estimate the bytes of memory of the source messages that are kept with pending results.

    It is estimated by a sample.
    """
    messages = list(islice(reversed(pending_results.values()), _SAMPLE))
    if not messages:
        return 0
    values = (None if message is None else message.value() for message in messages)
    size = sum(_MESSAGE_BYTES + (0 if value is None else len(value)) for value in values)
    return size * len(pending_results) // len(messages)


def register_emit_at_commit(
    binding: Binding,
    store: Any,
    view: TableView,
    copy_value: CopyFunction,
    *,
    timestamps_at_window_end: bool = False,
) -> PendingResults:
    """Return a dict for changed entries, and register a callback that emits them at the commit.

    An entry goes downstream as an update with the value that it has then. Its timestamp is the
    entry's, or with `timestamps_at_window_end` the end of its window. Steps that share a store
    share the dict.
    """
    context, downstream = binding.context, binding.downstream
    noted = context.uncommitted_results.get(store.name)
    if noted is not None:
        return noted
    held: PendingResults = {}
    context.uncommitted_results[store.name] = held
    sends_old, before = view.sends_old_values, store.read_committed_value
    assert view.spec is not None
    own_key = create_downstream_key_copier(binding, view.spec)
    expires = view.spec.ttl_ms is not None

    def emit_results() -> None:
        while held:
            for entry, message in list(held.items()):
                del held[entry]  # from now on a look-up of what was emitted finds it
                new = entry.value
                old = before(entry) if sends_old or new is None else None
                if new is None and old is None and not expires:
                    continue  # it came and went since the last commit: no step has seen it
                context.message = message
                time_ms = entry.key.end_ms if timestamps_at_window_end else entry.timestamp_ms
                key = own_key(entry.key)
                downstream(key, copy_value(new), old if sends_old else None, time_ms, True)
        context.message = None

    context.commit_callbacks.append(emit_results)
    return held
