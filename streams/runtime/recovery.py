"""What user code, a store or a client raised, as the error that says what happens next."""

from __future__ import annotations

import traceback

from state.errors import StateError
from streams.errors import StreamsError
from streams.runtime.clients import recovery_from_produce
from streams.runtime.failures import NAMED


def named(error: Exception, what: str) -> Exception:
    """The error that says what happens next, of whatever processing `what` raised. Where it was in
    a user's function it says the line."""
    if isinstance(error, NAMED):
        return error
    if (recovery := recovery_from_produce(error, f"{what}: produce")) is not None:
        return recovery
    reason = str(error)
    if not isinstance(error, StateError):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{error!r} in {frame.name}, {frame.filename}:{frame.lineno}"
    return StreamsError(f"{what} can't be processed: {reason}")
