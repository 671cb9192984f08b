"""Say how far behind an answer of a standby task may be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class StaleBounds:
    """Lets standby tasks answer, which may be behind (Kafka Streams' enableStaleStores).

    `max_lag` is how many offsets of the changelog a standby may be behind, markers of transactions
    included; `max_age` the time in seconds before which everything has to be in the answer. None is
    no bound. Raises ValueError for a bound below 0.
    """

    max_lag: int | None = None
    max_age: float | timedelta | None = None

    def __post_init__(self) -> None:
        if (self.max_lag or 0) < 0 or (self.max_age_s or 0) < 0:
            raise ValueError(f"bounds of stale answers are 0 or more: {self}")

    @property
    def max_age_s(self) -> float | None:
        """Return the greatest age in seconds; None for any."""
        return self.max_age.total_seconds() if isinstance(self.max_age, timedelta) else self.max_age

    def describe_excess(self, lag: int | None, age_s: float | None) -> str:
        """Return by what an answer is too far behind, empty if it is not; None is not known."""
        if self.max_lag is not None and (lag is None or lag > self.max_lag):
            behind = "an unknown number of" if lag is None else str(lag)
            return f"{behind} offsets behind its changelog, and {self.max_lag} are allowed"
        if age_s is None:
            return "of an age that is not known yet"
        if self.max_age_s is not None and age_s > self.max_age_s:
            return f"{age_s:.3f} s old, and {self.max_age_s:g} s are allowed"
        return ""
