"""Name the likely cause of an incident: what comes first in the chain of causes explains the rest.

A full disk ends workers, whose tasks move, which rebalances the group: all of it is in the logs,
and the disk is the cause.
"""

from __future__ import annotations

from typing import NamedTuple

from streams.log_analysis.chains import rank_symptom_code
from streams.log_analysis.incidents import Incident, IncidentLine
from streams.log_analysis.patterns import EventKind
from streams.symptoms.lookup import find_by_code

_LINES_MAX = 5
_PAUSE = (
    "The process stood still, or was not given the processor: no function of the user's was "
    "reported as stuck."
)
_UNHEARD = (
    "The broker heard no heartbeat of a member for its session time-out: the process stood still "
    "(stopped by a signal, suspended, or not given the processor), or was cut off from the broker."
)
_LED_TO = {"MR-034", "MR-010", "MR-011", "MR-021"}
"""The codes of what follows from a pause: its thread did not commit, or was not heard."""
_SLOW = "A function took longer than max_poll_interval_ms, or than the transaction's time-out."


class LikelyCause(NamedTuple):
    """Names a cause: its code, a sentence, and the lines that show it."""

    code: str
    sentence: str
    lines: tuple[IncidentLine, ...]


def find_cause(incident: Incident) -> LikelyCause:
    """Return the likely cause of an incident, with the lines that show it and what followed."""
    codes = sorted(incident.codes, key=rank_symptom_code)
    code = codes[0]
    lines = [line for each in codes for line in incident.lines.get(each, [])]
    ordered = sorted(lines[:_LINES_MAX], key=lambda line: line.at_s or 0.0)
    return LikelyCause(code, _describe_cause(code, incident), tuple(ordered))


def _describe_cause(code: str, incident: Incident) -> str:
    """Return the sentence about a cause; for a pause it names what paused."""
    if code in ("MR-034", "MR-063") and (_LED_TO & incident.codes.keys() or code == "MR-034"):
        return _SLOW if _names_user_function(incident) else _PAUSE
    if code == "MR-021" and incident.kinds[EventKind.PAUSE]:
        return _UNHEARD
    symptom = find_by_code(code)
    return "" if symptom is None else symptom.meaning


def _names_user_function(incident: Incident) -> bool:
    """Return whether the watchdog has found a thread in a function of the user's."""
    lines = incident.lines.get("MR-063", [])
    return any("in the user's function" in each.message for each in lines)
