"""Plant bugs in the search for records that brokers refuse."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from streams.runtime.clients.errors import RecordRefused
from streams.runtime.clients.refused_writes import RefusedWrites, _SingleWriter
from tests.simulation.bugs import replaced
from tests.simulation.runtime.applications.refused import COPIES
from tests.simulation.runtime.bugs import Planted
from tests.simulation.runtime.checkers import Results
from tests.simulation.world import World


def refusals_taken_for_any_record(world: World) -> AbstractContextManager[None]:
    """Make the handler be asked about the next copy that is written, whichever was refused."""

    def make(original: Any) -> Any:
        def find_refusal(self: Any, place: Any, content: int) -> Any:
            known = iter(self._refusals.values() if place.topic == COPIES else ())
            return next(known, None)

        return find_refusal

    return replaced(RefusedWrites, "find_refusal", make)


def topics_excluded_with_their_limits(world: World) -> AbstractContextManager[None]:
    """Make all records of a topic be taken for refused while its limits are known."""

    def make(original: Any) -> Any:
        def find_certain_refusal(self: Any, topic: str, *record: Any) -> Any:
            found = original(self, topic, *record)
            if topic in self._limits and found is None:
                return next(iter(self._refusals.values()), None)
            return found

        return find_certain_refusal

    return replaced(RefusedWrites, "find_certain_refusal", make)


def refused_records_left_out(world: World) -> AbstractContextManager[None]:
    """Make a record that is refused be left out, and no handler be asked."""

    def make(original: Any) -> Any:
        def write(*arguments: Any, **named: Any) -> None:
            try:
                original(*arguments, **named)
            except RecordRefused:
                return

        return write

    return replaced(_SingleWriter, "write", make)


REFUSED: dict[str, Any] = {"kind": "refused", "guarantee": "exactly_once_v2", "switches": False}
REFUSAL_BUGS = (
    Planted(refusals_taken_for_any_record, (Results,), "kills", REFUSED),
    Planted(topics_excluded_with_their_limits, (Results,), "kills", REFUSED),
    Planted(refused_records_left_out, (Results,), "kills", REFUSED),
)
