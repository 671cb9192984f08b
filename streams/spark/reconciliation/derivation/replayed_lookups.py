"""Answer the look-ups of a replayed task in global tables as the ledger says they were answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from state.entry import ValueAndTimestamp
from streams.errors import ConfigError, UserError
from streams.graph.nodes import GlobalTableSpec
from streams.ledger import LookupState
from streams.spark.reconciliation.derivation.global_topics import (
    GlobalTableHistory,
    GlobalTopicRead,
)
from streams.spark.reconciliation.derivation.ledger_order import decode_step_lookups


@dataclass(frozen=True, slots=True)
class GlobalTableSource:
    """Represents a global table that a replay looks rows up in, and the read of its topic."""

    table: GlobalTableSpec
    read: GlobalTopicRead


class GlobalTableHistories:
    """Reads the topic of each global table once, at the first look-up, for one task of Spark.

    Another task on the same executor reads it again.
    """

    def __init__(self, sources: Mapping[str, GlobalTableSource]) -> None:
        self.sources = sources
        self._histories: dict[str, GlobalTableHistory] = {}

    def get_or_load_history(self, store: str) -> GlobalTableHistory:
        """Return the history of the global table with this store."""
        if store not in self._histories:
            source = self.sources[store]
            self._histories[store] = GlobalTableHistory(source.table, source.read)
        return self._histories[store]


class ReplayedLookups:
    """Answers the look-ups of the steps of one task, from commit to commit."""

    def __init__(self, histories: GlobalTableHistories) -> None:
        self._histories = histories
        self._stores: dict[str, _ReplayedGlobalStore] = {}
        self._error: UserError | None = None

    def open_store(self, name: str, step: str) -> _ReplayedGlobalStore | None:
        """Return the replayed global table's store for a step; None if there is no such table."""
        if name not in self._histories.sources:
            return None
        self._stores[step] = store = _ReplayedGlobalStore(name, step, self._histories, self)
        return store

    def begin_lookups_of_commit(self, lookups: Mapping[str, str]) -> None:
        """Begin with the look-ups of the next commit; `lookups` are the ledger's, by step.

        Raises ConfigError where the ledger is damaged.
        """
        for step, store in self._stores.items():
            store.begin_lookups_of_commit(lookups.get(step))

    @contextmanager
    def explain_failures(self) -> Iterator[None]:
        """Raise the error of a look-up whose row is not known in the place of what it led to."""
        try:
            yield
        except Exception as error:
            if self._error is not None:
                raise self._error from error
            raise

    def raise_if_unknown(self) -> None:
        """Raise the error of a look-up whose row is not known, whatever handlers made of it."""
        if self._error is not None:
            raise self._error

    def note_unknown_row(self, error: UserError) -> None:
        """Keep the first error of a look-up."""
        self._error = self._error or error


class _ReplayedGlobalStore:
    """Looks rows up for one step, each in the state of the table that the ledger names."""

    def __init__(
        self, name: str, step: str, histories: GlobalTableHistories, lookups: ReplayedLookups
    ) -> None:
        self._name = name
        self._step = step
        self._histories = histories
        self._lookups = lookups
        self._spec = histories.sources[name].table.store
        self._count = 0
        self._states: list[LookupState] = []
        self._at = -1

    def begin_lookups_of_commit(self, encoded_states: str | None) -> None:
        """Begin with the first look-up of a commit. Raises ConfigError."""
        self._count, self._at = 0, -1
        self._states = (
            [] if encoded_states is None else decode_step_lookups(self._step, encoded_states)[1]
        )

    def entry(self, key: Any) -> ValueAndTimestamp[Any] | None:
        """Return the row that the look-up has found. Raises UserError if it is not known."""
        key_bytes = self._spec.key.serialize(key)
        try:
            row = self._histories.get_or_load_history(self._name).find_row(
                key_bytes, self._advance_to_state()
            )
        except UserError as error:
            self._lookups.note_unknown_row(error)
            raise
        self._count += 1
        if row is None:
            return None
        value, timestamp_ms = row
        return ValueAndTimestamp(self._spec.value.deserialize(value), timestamp_ms)

    def _advance_to_state(self) -> tuple[int, ...]:
        """Return the positions of the table at the present look-up. Raises ConfigError."""
        states = self._states
        while self._at + 1 < len(states) and states[self._at + 1].first <= self._count:
            self._at += 1
        if self._at < 0:
            raise ConfigError(
                f"the ledger does not tell what step {self._step!r} found in global table "
                f"{self._name!r}: the step had another name, or the table changed too often"
            )
        return states[self._at].positions
