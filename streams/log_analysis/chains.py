"""Say which faults follow from which, so that unrelated ones of the same minute stay apart.

    broker away      -> time-outs, fencing, migrations, restores that stand still
    thread held up   -> time-out of the transaction -> fencing -> migration
    failed record    -> the thread is replaced, and its transaction ends

A thread that ends or starts over is the end of nearly every chain, and a fault about another topic,
store or function is another fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streams.log_analysis.events import LogEvent

ORDER = (
    *("MR-062", "MR-043", "MR-044"),
    *("MR-024", "MR-025", "MR-022", "MR-023"),
    *("MR-073", "MR-071", "MR-070", "MR-072"),
    *("MR-030", "MR-031", "MR-032"),
    *("MR-040", "MR-042", "MR-034", "MR-063", "MR-012", "MR-020"),
    *("MR-010", "MR-011", "MR-016", "MR-015", "MR-041", "MR-014", "MR-021", "MR-060", "MR-013"),
)
"""Codes from causes to consequences; others come last."""

_THREAD_ENDS = frozenset({"MR-003", "MR-013", "MR-014", "MR-021", "MR-081", "MR-082", "MR-083"})
"""What may follow from any fault: a thread ends or starts over, and its tasks move."""
_ENDS = _THREAD_ENDS | {"MR-010", "MR-011", "MR-015", "MR-016"}
"""What may follow besides from a thread that did not commit in time, or lost its membership."""
_WAITS = frozenset({"MR-012", "MR-041", "MR-042", "MR-050", "MR-060", "MR-063"})
"""What is seen where brokers do not answer."""
_FOLLOWS = {
    "MR-062": _ENDS | _WAITS | {"MR-020", "MR-034", "MR-040"},
    "MR-040": _ENDS | _WAITS | {"MR-020", "MR-034"},
    "MR-042": _ENDS | _WAITS | {"MR-034"},
    "MR-041": _ENDS | {"MR-012", "MR-060", "MR-063"},
    "MR-025": _ENDS | {"MR-022", "MR-060", "MR-063"},
    "MR-024": _ENDS | {"MR-020", "MR-022", "MR-060"},
    "MR-023": _ENDS | {"MR-020", "MR-060"},
    "MR-034": _ENDS | {"MR-012", "MR-020", "MR-063"},
    "MR-063": _ENDS | {"MR-012", "MR-020", "MR-034"},
    "MR-031": _ENDS | {"MR-020"},
    "MR-012": _ENDS | {"MR-020"},
    "MR-010": _ENDS | {"MR-020"},
    "MR-011": _ENDS | {"MR-020"},
    "MR-020": _THREAD_ENDS | {"MR-060"},
}
"""The codes that may follow from a code; of others `_THREAD_ENDS` may."""
_DISTINCTIONS = {
    **dict.fromkeys(("MR-070", "MR-071", "MR-072", "MR-051", "MR-052"), "topic"),
    **dict.fromkeys(("MR-022", "MR-025"), "topic"),
    **dict.fromkeys(("MR-020", "MR-024"), "store"),
    "MR-063": "function",
}
"""The kind of subject by which two faults with one code are told apart."""


class Fault(NamedTuple):
    """Describes a fault by its code, and by the topic, store or function that it is about."""

    code: str
    distinction: str | None

    @property
    def is_origin(self) -> bool:
        """Return whether it follows from nothing: a function of the user's takes long by itself."""
        return self.code == "MR-063" and self.distinction is not None

    def may_follow(self, cause: Fault) -> bool:
        """Return whether this fault may follow from another, or be the same one."""
        if self.code == cause.code:
            return None in (self.distinction, cause.distinction) or (
                self.distinction == cause.distinction
            )
        follows = self.code in _FOLLOWS.get(cause.code, _THREAD_ENDS)
        return follows and not self.is_origin


def find_fault(event: LogEvent) -> Fault | None:
    """Return the kind of fault that a log event shows, None if it is no fault by itself."""
    code = event.pattern.code
    if not code:
        return None
    about = dict(event.about)
    kind = _DISTINCTIONS.get(code, "")
    distinction = about.get(kind)
    if kind == "topic" and distinction is None and "partition" in about:
        distinction = about["partition"].rpartition("[")[0]
    return Fault(code, distinction)


def rank_symptom_code(code: str) -> int:
    """Return the place of a code in the order from causes to consequences."""
    return ORDER.index(code) if code in ORDER else len(ORDER)


def choose_cause(faults: Iterable[Fault | None]) -> Fault | None:
    """Return the fault that explains the others, None if there is none."""
    known = [each for each in faults if each is not None]
    return min(known, key=lambda each: rank_symptom_code(each.code), default=None)
