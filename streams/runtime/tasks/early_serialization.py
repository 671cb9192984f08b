"""Serialize values early, to find the record that wrote a value which a store's serde refuses.

Stores serialize objects at the commit, once for each key. Which record wrote a value that is
refused there is not known any more: the runtime rolls the transaction back (ValueRefused), and from
then on the stores of that task serialize each value as it is written, as Kafka Streams always does.
So the repetition meets the refusal at its record, or its punctuation, where the processing handler
is called. A process that ends in between starts with serializing at the commit, with the same
result.

    state    a serde refuses                     what happens
    LATE     a value at the commit, or in a      ValueRefused: rolled back, EARLY
             sink, which may be handed a value
             that its store would refuse
    LATE     (a changelog, not a serde) a value  ValueRefused: rolled back, EARLY, with the limit
             that is too large                   of the changelog for each value
    EARLY    a value as it is written            the handler of the step is asked

    from     to      when
    EARLY    LATE    at a commit, QUIET_MS after the last refusal, if a record has brought one
                     since the state was entered and nothing else has: what punctuations write is
                     not written again by a repetition
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from state.early_serialization import ChangeLimit
from state.store import StateStore
from streams.graph.internal_context import InternalProcessorContext
from streams.settings.exception_handlers import Stage

_NO_LIMITS: Mapping[str, ChangeLimit] = MappingProxyType({})
QUIET_MS = 60_000
"""How long a task goes on serializing early after a refusal, by the wall clock. Where refusals are
frequent, a task that stopped at once would be rolled back for each of them."""


class EarlySerialization:
    """Decides whether the stores of one task serialize each value as it is written.

    `get_stores` returns the stores that the task has now, by name; `is_processing_record` whether a
    record is being processed.
    """

    def __init__(
        self,
        get_stores: Callable[[], Mapping[str, StateStore]],
        is_processing_record: Callable[[], bool],
    ) -> None:
        self._get_stores = get_stores
        self._is_processing_record = is_processing_record
        self.is_on = False
        self._limits: dict[str, ChangeLimit] = {}
        self._is_by_records_only = True
        self._is_refused_since_commit = False
        self._refused_at_ms: int | None = None
        """The wall-clock time at which a value was last refused; None if none was."""

    def start_serializing_early(self, limits: Mapping[str, ChangeLimit] = _NO_LIMITS) -> None:
        """Let the stores serialize each value as it is written; call it before any write.

        `limits` are those of changelogs that have refused a larger value, by store.
        """
        self._limits |= limits
        self.is_on = self._is_by_records_only = True
        self._is_refused_since_commit, self._refused_at_ms = False, None
        for name, store in self._get_stores().items():
            store.serialize_early(self.note_refusal, self._limits.get(name))

    def is_lower_limit(self, store: str, limit: ChangeLimit) -> bool:
        """Return whether a size limit is lower than the one that a store's values have now."""
        known = self._limits.get(store) if self.is_on else None
        return known is None or limit.bytes_max < known.bytes_max

    def note_refusal(self) -> None:
        """Note that a serde has refused a value that the current record or callback has written."""
        self._is_refused_since_commit = True
        self._is_by_records_only = self._is_by_records_only and self._is_processing_record()

    def serialize_mutated_values(
        self, context: InternalProcessorContext, step_of: Callable[[str], str]
    ) -> None:
        """Serialize stored objects that user code may have changed in place, to find refused ones.

        A value that a serde refuses is a failure of the processing, at the step that `step_of`
        names for its store.
        """
        for name, store in self._get_stores().items():
            for key, value, error in store.serialize_mutated_objects():
                context.skip_record_or_raise(
                    Stage.PROCESSING, step_of(name), error, key=key, value=value
                )

    def stop_when_quiet(self, now_ms: int) -> None:
        """Let the stores serialize at the commit again, if no value was refused for a minute."""
        if self._is_refused_since_commit:
            self._is_refused_since_commit, self._refused_at_ms = False, now_ms
        since_ms = self._refused_at_ms
        if since_ms is None or not self._is_by_records_only or now_ms - since_ms < QUIET_MS:
            return
        self.is_on = False
        self._limits.clear()
        for store in self._get_stores().values():
            store.serialize_early(None)
