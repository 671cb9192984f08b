"""Name the errors that select the recovery, and translate others into them.

Others are those of user code and stores. What a client of the runtime raises is translated where
the client is called; so a Kafka error that arrives here comes from a client of the user's own.
"""

from __future__ import annotations

from state.errors import StateError, StoreSerdeError
from streams.common.user_code import describe_error
from streams.errors import (
    OutcomeUnknown,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    UserError,
    ValueRefused,
    WriteRefused,
)

RECOVERY_ERRORS = (
    UserError,
    TaskMigrated,
    TaskCorrupted,
    OutcomeUnknown,
    ValueRefused,
    WriteRefused,
    MemoryError,
)
"""Errors that select the recovery themselves: no handler is called for them."""


def to_recovery_error(error: Exception, processed: str) -> Exception:
    """Return the error that selects the recovery from an exception of a task's processing.

    An error that selects its recovery itself is returned as it is; all others become StreamsError,
    with the line of the user's function where it was raised in one.
    """
    if isinstance(error, RECOVERY_ERRORS):
        return error
    if isinstance(error, StateError) and not isinstance(error, StoreSerdeError):
        return StreamsError(
            f"{error} (while processing {processed})"
        )  # not what was processed is wrong
    reason = str(error) if isinstance(error, StateError) else describe_error(error)
    return StreamsError(f"{processed} can't be processed: {reason}")
