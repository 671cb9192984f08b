"""What the coordinators' codes become on the wire: for older versions, and for a failed append."""

from __future__ import annotations

from coordinator.errors import Code


def coordinator_code(code: Code) -> Code:
    """A coordinator whose log can't be written to answers that it isn't one: look again, retry."""
    return Code.NOT_COORDINATOR if code is Code.KAFKA_STORAGE_ERROR else code


def fenced_code(code: Code, version: int, *, fenced_since: int) -> Code:
    """PRODUCER_FENCED (90) is INVALID_PRODUCER_EPOCH (47) before the version that brought it."""
    if code is Code.PRODUCER_FENCED and version < fenced_since:
        return Code.INVALID_PRODUCER_EPOCH
    return coordinator_code(code)
