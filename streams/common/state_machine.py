"""Hold a state that changes only along the transitions of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S", bound=StrEnum)


class StateMachine(Generic[S]):
    """Holds the state of `owner`; `transitions` has the states that may follow each state.

    `on_change` is called with each new state. The counterpart in Kafka Streams is
    ThreadStateTransitionValidator.
    """

    def __init__(
        self,
        owner: str,
        initial: S,
        transitions: Mapping[S, Collection[S]],
        on_change: Callable[[S], None] = lambda state: None,
    ) -> None:
        self.state = initial
        self._owner = owner
        self._transitions = transitions
        self._on_change = on_change

    def change_state(self, state: S) -> None:
        """Change the state and report it.

        Raises RuntimeError for a transition that the table does not have: a mistake in the runtime,
        and the state stays as it was.
        """
        if state not in self._transitions[self.state]:
            raise RuntimeError(f"{self._owner} is {self.state}: it can't become {state}")
        self.state = state
        self._on_change(state)
