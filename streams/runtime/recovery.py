"""What user code or a store raised, as the error that says what happens next.

What a client of ours raised was named where it was called: a Kafka error here is a user's own.
"""

from __future__ import annotations

import traceback

from state.errors import Refused, StateError
from streams.errors import StreamsError
from streams.runtime.failures import NAMED


def named(error: Exception, what: str) -> Exception:
    """The error that says what happens next, of whatever processing `what` raised. Where it was in
    a user's function it says the line."""
    if isinstance(error, NAMED):
        return error
    if isinstance(error, StateError) and not isinstance(error, Refused):
        return StreamsError(f"{error} (while processing {what})")  # not what was processed is wrong
    reason = str(error)
    if not isinstance(error, StateError):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{error!r} in {frame.name}, {frame.filename}:{frame.lineno}"
    return StreamsError(f"{what} can't be processed: {reason}")
