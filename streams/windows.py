"""Windows: how the records of a key are cut into stretches of time.

    kind        windows                                             a record is in
    tumbling    of one size, one after the other                    one
    hopping     of one size, one beginning at each advance          size / advance, rounded up
    sliding     one for each set of records that are no further     as many as there are such sets
                apart than the difference; both ends included
    session     one for each burst of records with no gap longer    one, which may join others
                than this between them; both ends included
    unlimited   one, without an end                                 one

Windows begin at multiples of their size or advance since 1970 (UTC). A window closes when stream
time is `grace` past its end: records that come later are late, and dropped. Times are in ms;
durations are ms or `timedelta`. Source: TimeWindows, SlidingWindows, SessionWindows and
UnlimitedWindows of Kafka Streams.
"""

from __future__ import annotations

from dataclasses import dataclass

from state.keys import TIME_MAX
from streams.durations import Duration, duration_ms
from streams.errors import TopologyError

__all__ = [
    "SessionWindows",
    "SlidingWindows",
    "TimeWindows",
    "UnlimitedWindows",
    "Windows",
    "hopping",
    "session",
    "sliding",
    "tumbling",
    "unlimited",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindows:
    """Windows of one size: tumbling, or hopping where `advance_ms` is less than `size_ms`."""

    size_ms: int
    advance_ms: int
    grace_ms: int
    idle_close_ms: int | None = None

    @property
    def close_after_ms(self) -> int:
        """How far stream time is past the end of a window when it closes."""
        return self.grace_ms

    @property
    def retention_ms(self) -> int:
        """How long a window has to be kept, at least: as long as a record may come to it."""
        return self.size_ms + self.grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindows:
    """Windows between records that are at most `difference_ms` apart."""

    difference_ms: int
    grace_ms: int
    idle_close_ms: int | None = None

    @property
    def size_ms(self) -> int:
        """From the start of a window to its end, both of which are part of it."""
        return self.difference_ms

    @property
    def close_after_ms(self) -> int:
        return self.grace_ms

    @property
    def retention_ms(self) -> int:
        """A record looks at the windows that begin up to twice the difference before it."""
        return 2 * self.difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindows:
    """Sessions: records with at most `gap_ms` between them."""

    gap_ms: int
    grace_ms: int
    idle_close_ms: int | None = None

    @property
    def close_after_ms(self) -> int:
        """A session that could still be joined by a record is open."""
        return self.gap_ms + self.grace_ms

    @property
    def retention_ms(self) -> int:
        return self.gap_ms + self.grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlimitedWindows:
    """One window from `start_ms` on, which never closes. Records before it are passed over."""

    start_ms: int

    size_ms = TIME_MAX
    close_after_ms = 0
    grace_ms = 0
    retention_ms = TIME_MAX
    idle_close_ms = None


Windows = TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows


def tumbling(
    size: Duration, grace: Duration = 0, *, idle_close: Duration | None = None
) -> TimeWindows:
    """Windows of `size`, one after the other. `idle_close`: see `docs/windows.md`.

    Raises TopologyError, as all of these do, for what can't be a window.
    """
    size_ms = _positive("tumbling", size, "size")
    return TimeWindows(
        size_ms=size_ms,
        advance_ms=size_ms,
        grace_ms=_ms("tumbling", grace, "grace"),
        idle_close_ms=_idle("tumbling", idle_close),
    )


def hopping(
    size: Duration, advance: Duration, grace: Duration = 0, *, idle_close: Duration | None = None
) -> TimeWindows:
    """Windows of `size`, one beginning at each `advance`, which is not longer than `size`."""
    size_ms = _positive("hopping", size, "size")
    advance_ms = _positive("hopping", advance, "advance")
    if advance_ms > size_ms:
        raise TopologyError(
            f"windows.hopping: advance is {advance_ms} ms and size {size_ms} ms: records between "
            "two windows would be in none. Make advance at most size"
        )
    return TimeWindows(
        size_ms=size_ms,
        advance_ms=advance_ms,
        grace_ms=_ms("hopping", grace, "grace"),
        idle_close_ms=_idle("hopping", idle_close),
    )


def sliding(
    difference: Duration, grace: Duration = 0, *, idle_close: Duration | None = None
) -> SlidingWindows:
    """A window for each set of records of a key that are at most `difference` apart: one that ends
    at each record, and one that begins right after it if records follow."""
    return SlidingWindows(
        difference_ms=_positive("sliding", difference, "difference"),
        grace_ms=_ms("sliding", grace, "grace"),
        idle_close_ms=_idle("sliding", idle_close),
    )


def session(
    gap: Duration, grace: Duration = 0, *, idle_close: Duration | None = None
) -> SessionWindows:
    """Sessions: a record joins those that begin or end at most `gap` away from it."""
    return SessionWindows(
        gap_ms=_ms("session", gap, "gap"),
        grace_ms=_ms("session", grace, "grace"),
        idle_close_ms=_idle("session", idle_close),
    )


def unlimited(start: int = 0) -> UnlimitedWindows:
    """One window from `start`, in ms since 1970, for ever."""
    if not isinstance(start, int) or isinstance(start, bool) or not 0 <= start < TIME_MAX:
        raise TopologyError(
            f"windows.unlimited: start={start!r} is not a time in ms since 1970, 0 or later"
        )
    return UnlimitedWindows(start_ms=start)


def _ms(kind: str, duration: Duration, what: str) -> int:
    try:
        ms = duration_ms(duration, what)
    except ValueError as error:
        raise TopologyError(f"windows.{kind}: {error}") from None
    if ms > TIME_MAX // 4:
        raise TopologyError(
            f"windows.{kind}: {what}={duration!r} is too long: for one window of all time there "
            "is windows.unlimited()"
        )
    return ms


def _positive(kind: str, duration: Duration, what: str) -> int:
    ms = _ms(kind, duration, what)
    if ms == 0:
        raise TopologyError(f"windows.{kind}: {what}={duration!r} must be at least 1 ms")
    return ms


def _idle(kind: str, duration: Duration | None) -> int | None:
    return None if duration is None else _positive(kind, duration, "idle_close")
