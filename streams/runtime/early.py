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
    EARLY    a value as it is written            the handler of the step is asked

    from     to      when
    EARLY    LATE    at a commit, QUIET_MS after the last refusal, if a record has brought one
                     since the state was entered and nothing else has: what punctuations write is
                     not written again by a repetition
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from state.store import StateStore
from streams.handling import Stage
from streams.topology.nodes import Context

QUIET_MS = 60_000
"""How long a task goes on serializing early after a refusal, by the wall clock. Where refusals are
frequent, a task that stopped at once would be rolled back for each of them."""


class EarlySerialization:
    """Decides whether the stores of one task serialize each value as it is written.

    `get_stores` returns the stores that the task has now, by name; `is_processing_record` whether a
    record is being processed.
    """

    def __init__(
        self, stores: Callable[[], Mapping[str, StateStore]], of_record: Callable[[], bool]
    ) -> None:
        self._stores = stores
        self._of_record = of_record
        self.is_on = False
        self._by_records_only = True
        self._is_refused = False
        self._refused_ms: int | None = None
        """The wall-clock time at which a value was last refused; None if none was."""

    def start(self) -> None:
        """Let the stores serialize each value as it is written; call it before any write."""
        self.is_on = self._by_records_only = True
        self._is_refused, self._refused_ms = False, None
        for store in self._stores().values():
            store.serialize_early(self.note_refusal)

    def note_refusal(self) -> None:
        """Note that a serde has refused a value of what is being processed."""
        self._is_refused = True
        self._by_records_only = self._by_records_only and self._of_record()

    def settle(self, context: Context, step_of: Callable[[str], str]) -> None:
        """Serialize stored objects that user code may have changed in place, to find refused ones.

        A value that a serde refuses is a failure of the processing, at the step that `step_of`
        names for its store.
        """
        for name, store in self._stores().items():
            for key, value, error in store.settle():
                context.failed(Stage.PROCESSING, step_of(name), error, key=key, value=value)

    def committed(self, now_ms: int) -> None:
        """Go back to serializing at the commit, if no value was refused for a minute."""
        if self._is_refused:
            self._is_refused, self._refused_ms = False, now_ms
        since_ms = self._refused_ms
        if since_ms is None or not self._by_records_only or now_ms - since_ms < QUIET_MS:
            return
        self.is_on = False
        for store in self._stores().values():
            store.serialize_early(None)
