"""Convert durations: a number of milliseconds, or a `timedelta`."""

from __future__ import annotations

from datetime import timedelta

Duration = int | timedelta


def duration_to_ms(duration: Duration, argument: str) -> int:
    """Convert `duration` to ms.

    Raises ValueError, which calls it `argument`, if it is no duration or is negative.
    """
    if isinstance(duration, timedelta):
        duration = duration // timedelta(milliseconds=1)
    if not isinstance(duration, int) or isinstance(duration, bool):
        raise ValueError(f"{argument}={duration!r} is neither milliseconds nor a timedelta")
    if duration < 0:
        raise ValueError(f"{argument} can't be negative: {duration} ms")
    return duration
