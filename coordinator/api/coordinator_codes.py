"""What the coordinators' codes become on the wire: for older versions, and for a failed append."""

from __future__ import annotations

from coordinator.errors import Code


def coordinator_code(code: Code) -> Code:
    """A coordinator whose log can't be written to answers that it isn't one: look again, retry.
    That what it would write is too large for the log is not the client's to repair."""
    match code:
        case Code.KAFKA_STORAGE_ERROR:
            return Code.NOT_COORDINATOR
        case Code.MESSAGE_TOO_LARGE:
            return Code.UNKNOWN_SERVER_ERROR
        case _:
            return code


def fenced_code(code: Code, version: int, *, fenced_since: int) -> Code:
    """PRODUCER_FENCED (90) is INVALID_PRODUCER_EPOCH (47) before the version that brought it."""
    if code is Code.PRODUCER_FENCED and version < fenced_since:
        return Code.INVALID_PRODUCER_EPOCH
    return coordinator_code(code)
