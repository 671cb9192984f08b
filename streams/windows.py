"""Define windows: how the records of a key are divided into intervals of time.

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

import logging
from dataclasses import dataclass
from typing import NoReturn

from state.guessed_names import explain_guessed_names
from state.keys import TIME_MAX
from streams.common.call_hints import explain_call
from streams.common.durations import Duration, duration_to_ms
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


log = logging.getLogger(__name__)

_SECOND_MS = 1_000


@explain_guessed_names(
    {
        "of_size_and_grace": "windows.tumbling(size, grace=...)",
        "of_size_with_no_grace": "windows.tumbling(size)",
        "of": "windows.tumbling(size)",
        "advance_by": "windows.hopping(size, advance, grace=...)",
        "size": "size_ms",
    }
)
@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindows:
    """Defines windows of one size: tumbling, or hopping if `advance_ms` is below `size_ms`."""

    size_ms: int
    advance_ms: int
    grace_ms: int
    idle_close_ms: int | None = None

    @property
    def close_delay_past_end_ms(self) -> int:
        """Return how far stream time has passed a window's end when the window closes, in ms."""
        return self.grace_ms

    @property
    def retention_ms(self) -> int:
        """Return how long a window must be kept at least: as long as a record may come to it."""
        return self.size_ms + self.grace_ms


@explain_guessed_names(
    {
        "of_time_difference_and_grace": "windows.sliding(difference, grace=...)",
        "of_time_difference_with_no_grace": "windows.sliding(difference)",
    }
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindows:
    """Defines windows between records that are at most `difference_ms` apart."""

    difference_ms: int
    grace_ms: int
    idle_close_ms: int | None = None

    @property
    def size_ms(self) -> int:
        """Return the time from the start of a window to its end, both of which belong to it."""
        return self.difference_ms

    @property
    def close_delay_past_end_ms(self) -> int:
        """Return how far stream time has passed a window's end when the window closes, in ms."""
        return self.grace_ms

    @property
    def retention_ms(self) -> int:
        """Return how long a window must be kept at least.

        A record looks at the windows that begin up to twice the difference before it.
        """
        return 2 * self.difference_ms + self.grace_ms


@explain_guessed_names(
    {
        "of_inactivity_gap_and_grace": "windows.session(gap, grace=...)",
        "of_inactivity_gap_with_no_grace": "windows.session(gap)",
    }
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindows:
    """Defines sessions: bursts of records with at most `gap_ms` between them."""

    gap_ms: int
    grace_ms: int
    idle_close_ms: int | None = None

    @property
    def close_delay_past_end_ms(self) -> int:
        """Return how far stream time has passed a session's last record when it closes, in ms.

        A session that a record could still join is open.
        """
        return self.gap_ms + self.grace_ms

    @property
    def retention_ms(self) -> int:
        """Return how long a session must be kept at least: as long as a record may join it."""
        return self.gap_ms + self.grace_ms


@explain_guessed_names(
    {
        "of": "windows.unlimited()",
        "start_on": "windows.unlimited(start=...)",
    }
)
@dataclass(frozen=True, slots=True, kw_only=True)
class UnlimitedWindows:
    """Defines one window from `start_ms` on, which never closes; earlier records are dropped."""

    start_ms: int

    size_ms = TIME_MAX
    close_delay_past_end_ms = TIME_MAX
    grace_ms = 0
    retention_ms = TIME_MAX
    idle_close_ms = None


Windows = TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows


@explain_call
def tumbling(
    size: Duration, grace: Duration = 0, *, idle_close: Duration | None = None
) -> TimeWindows:
    """Define windows of `size`, one after the other.

    Kafka Streams' TimeWindows.ofSizeAndGrace. `idle_close`: see `docs/windows.md`. Raises
    TopologyError, as all these functions do, for arguments that define no window.

    >>> windows.tumbling(timedelta(minutes=5), grace=timedelta(seconds=30)).retention_ms
    330000
    """
    size_ms = _to_positive_ms("tumbling", size, "size")
    return TimeWindows(
        size_ms=size_ms,
        advance_ms=size_ms,
        grace_ms=_to_window_ms("tumbling", grace, "grace"),
        idle_close_ms=_to_idle_close_ms("tumbling", idle_close),
    )


@explain_call
def hopping(
    size: Duration, advance: Duration, grace: Duration = 0, *, idle_close: Duration | None = None
) -> TimeWindows:
    """Define windows of `size`, one beginning at each `advance`, which is at most `size`.

    Kafka Streams' TimeWindows.advanceBy. Raises TopologyError.

    >>> windows.hopping(timedelta(minutes=5), advance=timedelta(minutes=1)).advance_ms
    60000
    """
    size_ms = _to_positive_ms("hopping", size, "size")
    advance_ms = _to_positive_ms("hopping", advance, "advance")
    if advance_ms > size_ms:
        raise TopologyError(
            f"windows.hopping: advance is {advance_ms} ms and size {size_ms} ms: records between "
            "two windows would be in none. Make advance at most size"
        )
    return TimeWindows(
        size_ms=size_ms,
        advance_ms=advance_ms,
        grace_ms=_to_window_ms("hopping", grace, "grace"),
        idle_close_ms=_to_idle_close_ms("hopping", idle_close),
    )


@explain_call
def sliding(
    difference: Duration, grace: Duration = 0, *, idle_close: Duration | None = None
) -> SlidingWindows:
    """Define a window for each set of records of a key that are at most `difference` apart.

    One ends at each record, and one begins right after it if records follow. Kafka Streams'
    SlidingWindows. Raises TopologyError.

    >>> windows.sliding(timedelta(seconds=10)).difference_ms
    10000
    """
    return SlidingWindows(
        difference_ms=_to_positive_ms("sliding", difference, "difference"),
        grace_ms=_to_window_ms("sliding", grace, "grace"),
        idle_close_ms=_to_idle_close_ms("sliding", idle_close),
    )


@explain_call
def session(
    gap: Duration, grace: Duration = 0, *, idle_close: Duration | None = None
) -> SessionWindows:
    """Define sessions: a record joins those that begin or end at most `gap` away from it.

    Kafka Streams' SessionWindows.ofInactivityGapAndGrace. Raises TopologyError.

    >>> windows.session(timedelta(minutes=30)).close_delay_past_end_ms
    1800000
    """
    gap_ms = _to_window_ms("session", gap, "gap")
    _warn_if_short("session", gap, "gap")
    return SessionWindows(
        gap_ms=gap_ms,
        grace_ms=_to_window_ms("session", grace, "grace"),
        idle_close_ms=_to_idle_close_ms("session", idle_close),
    )


@explain_call
def unlimited(start: int = 0) -> UnlimitedWindows:
    """Define one window without an end from `start`, in ms since 1970.

    Kafka Streams' UnlimitedWindows.startOn. Raises TopologyError.

    >>> windows.unlimited(start=0).start_ms
    0
    """
    if not isinstance(start, int) or isinstance(start, bool) or not 0 <= start < TIME_MAX:
        raise TopologyError(
            f"windows.unlimited: start={start!r} is not a time in ms since 1970, 0 or later"
        )
    return UnlimitedWindows(start_ms=start)


def __getattr__(name: str) -> NoReturn:
    """Raise AttributeError for a window that is not here, with those that there are."""
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}: there are tumbling(size, grace=...), "
        "hopping(size, advance), sliding(difference), session(gap) and unlimited()"
    )


def _to_window_ms(kind: str, duration: Duration, argument: str) -> int:
    """Convert a duration of a window to ms. Raises TopologyError if it is invalid or too long."""
    try:
        ms = duration_to_ms(duration, argument)
    except ValueError as error:
        raise TopologyError(f"windows.{kind}: {error}") from None
    if ms > TIME_MAX // 4:
        raise TopologyError(
            f"windows.{kind}: {argument}={duration!r} is too long: for one window of all time "
            "there "
            "is windows.unlimited()"
        )
    return ms


def _to_positive_ms(kind: str, duration: Duration, argument: str) -> int:
    """Convert a duration of a window to ms. Raises TopologyError if it is invalid or 0."""
    ms = _to_window_ms(kind, duration, argument)
    if ms == 0:
        raise TopologyError(f"windows.{kind}: {argument}={duration!r} must be at least 1 ms")
    _warn_if_short(kind, duration, argument)
    return ms


def _warn_if_short(kind: str, duration: Duration, argument: str) -> None:
    """Log a warning for a number below a second, which may have been meant as seconds."""
    if isinstance(duration, int) and 0 < duration < _SECOND_MS:
        log.warning(
            "windows.%s: %s=%d is in milliseconds. For seconds write timedelta(seconds=%d); with "
            "timedelta(milliseconds=%d) this line is not written",
            kind,
            argument,
            duration,
            duration,
            duration,
        )


def _to_idle_close_ms(kind: str, duration: Duration | None) -> int | None:
    """Convert `idle_close` to ms; None stays None. Raises TopologyError if it is invalid or 0."""
    return None if duration is None else _to_positive_ms(kind, duration, "idle_close")
