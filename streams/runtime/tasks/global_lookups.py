"""Note what a task's steps found in global tables, for the ledger.

A global table takes part in no transaction: a thread of its own copies the topic meanwhile. So the
number of each look-up with which another state of the copy begins is noted, and the offsets up to
which the topic had been applied. Reads of processors (`context.store`) are not noted.
"""

from __future__ import annotations

from typing import Any

from state.key_value import KeyValueStore
from state.replica import TopicReplica
from state.store_checkpoint import StoreCheckpoint
from streams.common.topic_id_hashes import hash_topic_id_or_none
from streams.ledger import LookupState, encode_global_lookup_states

STATES_MAX = 10_000
"""The number of states of a copy between two commits up to which they are noted, for each step."""


class StepLookups:
    """Looks rows up in a replica for one step, and notes in which state it found the replica.

    It is used in the place of the replica's read-only store.
    """

    def __init__(self, replica: TopicReplica) -> None:
        self._replica = replica
        store: KeyValueStore[Any, Any] = replica.open_view()
        self._find_entry = store.entry
        self._count = 0
        self._noted: StoreCheckpoint | None = None
        self._states: list[LookupState] | None = []
        """None where it is not known which states there were."""

    def entry(self, key: Any) -> Any:
        """Return the value of `key` and its timestamp, or None; nothing is written meanwhile."""
        replica = self._replica
        while True:
            checkpoint = replica.find_applied_checkpoint()
            found = self._find_entry(key)
            if replica.is_unchanged_since(checkpoint):
                break
        if checkpoint is not self._noted:
            self._note_state(checkpoint)
        self._count += 1
        return found

    def pop_encoded_states(self) -> str | None:
        """Return the states since the last call as the ledger encodes them; None if not known.

        The text is empty if nothing was looked up.
        """
        states, last = self._states, self._noted
        self._count, self._noted, self._states = 0, None, []
        if states is None:
            return None
        if last is None:
            return ""
        return encode_global_lookup_states(hash_topic_id_or_none(last.topic_id), states)

    def _note_state(self, checkpoint: StoreCheckpoint | None) -> None:
        """Note the state of the replica from the present look-up on."""
        self._noted = checkpoint
        if checkpoint is None or self._states is None or len(self._states) == STATES_MAX:
            self._states = None
        else:
            self._states.append(LookupState(self._count, checkpoint.positions))


class GlobalLookups:
    """Keeps the look-ups of each step of one task in global tables, by the step's name."""

    def __init__(self) -> None:
        self._steps: dict[str, StepLookups] = {}

    def open_store(self, replica: TopicReplica, step: str) -> StepLookups:
        """Return the global table's store for a step, which notes each look-up for the ledger."""
        self._steps[step] = lookups = StepLookups(replica)
        return lookups

    def pop_encoded_states(self) -> dict[str, str]:
        """Return the states that each step has found since the last call, as in the ledger.

        Steps of which they are not known are left out, and those that looked nothing up.
        """
        taken = ((step, lookups.pop_encoded_states()) for step, lookups in self._steps.items())
        return {step: text for step, text in taken if text}
