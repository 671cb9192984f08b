"""Fold a key's records into sessions, which a record may extend and merge.

A record joins the sessions of its key that begin or end at most the gap away from it: their values
are merged, oldest first, into a new one, and the record is folded into that. The merged sessions
are deleted, each with a deletion that is forwarded, before the new one is written; but not where
the new one has the same bounds and the record is all there is of it. A session closes when stream
time is the gap and the grace past its end. Records without a key are dropped; those without a value
are aggregated.

Results have the end of their session as timestamp. At once they go without headers, which a result
at the commit has from the record that made it. Rules: KStreamSessionWindowAggregate,
SessionCacheFlushListener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from state.entry import StoreEntry
from state.session import SessionStore
from state.windowed import Windowed
from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.graph.views import TableView
from streams.operators.copies import (
    create_copier,
    create_downstream_copier,
    create_stored_copier,
    return_unchanged,
)
from streams.operators.folding import WindowFold, create_unstored_entry
from streams.operators.lateness import OnLate, create_late_handler
from streams.operators.window_close import wrap_with_emit_on_close
from streams.operators.window_results import create_result_forwarder
from streams.processor.record import MessageWithHeaders
from streams.windows import SessionWindows

SessionEntry = StoreEntry[Windowed[Any], Any]


def aggregate_sessions(
    view: TableView,
    windows: SessionWindows,
    window_fold: WindowFold,
    *,
    emits_on_close: bool = False,
    on_late: OnLate | None = None,
) -> Operator:
    """Return the operator that folds each record into its key's session and forwards the result."""
    gap_ms, open_ms = windows.gap_ms, windows.close_delay_past_end_ms

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, failed = binding.context, binding.skip_record_or_raise
        assert view.spec is not None
        time = binding.stream_time
        store: SessionStore[Any] = context.get_store(view.spec.name)
        find, check_value = store.find_sessions_to_merge, store.check_value
        handle_late = create_late_handler(binding, on_late)
        sends_old = view.sends_old_values and not emits_on_close and not view.spec.caching
        merged = _create_session_merger(binding, view, window_fold, copies_values=sends_old)
        replace = _create_session_writer(
            binding, view, store, emits=not emits_on_close, sends_old=sends_old
        )

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None:
                context.dropped_count += 1
                return
            if timestamp_ms > time.ms:
                time.ms = timestamp_ms
            start_ms = end_ms = timestamp_ms
            try:
                key_bytes, found = find(key, timestamp_ms - gap_ms, timestamp_ms + gap_ms)
                for entry in found.values():
                    session = entry.key
                    if session.start_ms < start_ms:
                        start_ms = session.start_ms
                    if session.end_ms > end_ms:
                        end_ms = session.end_ms
                is_late = end_ms < time.ms - open_ms
                new = None if is_late else merged(key, value, found.values())
                check_value(new)  # before the sessions that it replaces are removed
            except Exception as error:
                failed(error, key, value)
                return
            if is_late:
                handle_late(key, value, timestamp_ms, time.ms, start_ms, end_ms)
                return
            replace(key_bytes, found, Windowed(key, start_ms, end_ms), new, timestamp_ms)

        return (
            wrap_with_emit_on_close(binding, view, windows, process_record)
            if emits_on_close
            else process_record
        )

    return bind_operator


def _create_session_merger(
    binding: Binding, view: TableView, window_fold: WindowFold, *, copies_values: bool
) -> Callable[[Any, Any, Iterable[SessionEntry]], Any]:
    """Return a function that merges the sessions that a record joins and adds the record."""
    assert view.spec is not None
    assert window_fold.merger is not None
    if window_fold.is_count:
        return _count_merged_records
    initializer, fold, merger = window_fold.initializer, window_fold.fold, window_fold.merger
    copy_value = create_copier(view.spec.value)
    # A merger may change what it is handed, which is the store's until it is replaced.
    must_copy = copies_values or binding.context.skips_processing
    copy_stored_value = create_stored_copier(view.spec.value) if must_copy else return_unchanged

    def merge_sessions(key: Any, value: Any, joined_sessions: Iterable[SessionEntry]) -> Any:
        aggregate = initializer()
        for entry in joined_sessions:
            aggregate = merger(key, aggregate, copy_stored_value(entry.value))
        new = fold(key, value, aggregate)
        return copy_value(new) if new is value else new

    return merge_sessions


def _count_merged_records(key: Any, value: Any, joined_sessions: Iterable[SessionEntry]) -> int:
    """Return how many records a merged session has: those of the sessions in it, and one more."""
    count: Any = 1
    for entry in joined_sessions:
        count += entry.value
    return count  # type: ignore[no-any-return]


def _create_session_writer(
    binding: Binding, view: TableView, store: SessionStore[Any], *, emits: bool, sends_old: bool
) -> Callable[[bytes, dict[bytes, SessionEntry], Windowed[Any], Any, int], None]:
    """Return a function that replaces sessions by the one merged from them, and forwards it.

    It takes what `SessionStore.find_sessions_to_merge` returns, the merged session, its value, None
    to remove it, and the timestamp in ms of the record.
    """
    assert view.spec is not None
    context, hides_headers = binding.context, emits and not view.spec.caching
    remove_merged_session, get_merged_entry_for_update = (
        store.remove_merged_session,
        store.get_merged_entry_for_update,
    )
    copy_value = create_downstream_copier(binding, view.spec.value)
    forward_result = (
        create_result_forwarder(binding, view, store, copy_value, are_sessions=True)
        if emits
        else None
    )

    def replace_sessions(
        key_bytes: bytes,
        found: dict[bytes, SessionEntry],
        session: Windowed[Any],
        value: Any,
        timestamp_ms: int,
    ) -> None:
        message = context.message
        if hides_headers and message is not None and message.headers():
            context.message = MessageWithHeaders(message, ())
        try:
            if session.start_ms != session.end_ms:
                for disk_key, found_entry in found.items():
                    old_value = found_entry.value if sends_old else None
                    removed = remove_merged_session(disk_key, found_entry, timestamp_ms)
                    if forward_result is not None:
                        forward_result(removed, old_value, removed.key.end_ms)
            entry = get_merged_entry_for_update(key_bytes, found, session)
            if entry is None:
                entry = create_unstored_entry(session.key, session.start_ms, session.end_ms)
            entry.value, entry.timestamp_ms = value, timestamp_ms
            if forward_result is not None:
                forward_result(entry, None, session.end_ms)
        finally:
            context.message = message

    return replace_sessions
