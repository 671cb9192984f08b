"""Check replica assignments, of which one broker can grant one kind: itself alone."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.errors import Code, Refused


def check_replica_assignment(broker_ids: Sequence[int], node_id: int) -> None:
    """Raise Refused(INVALID_REPLICA_ASSIGNMENT) unless the replicas are this broker alone."""
    if not broker_ids:
        raise _create_invalid_assignment_error("an empty replica list")
    previous: int | None = None
    for broker_id in sorted(broker_ids):
        if broker_id == previous:
            raise _create_invalid_assignment_error(f"the broker {broker_id} more than once")
        if broker_id != node_id:
            raise _create_invalid_assignment_error(
                f"broker {broker_id}, but no such broker is registered"
            )
        previous = broker_id


def _create_invalid_assignment_error(what: str) -> Refused:
    message = f"The manual partition assignment includes {what}."
    return Refused(Code.INVALID_REPLICA_ASSIGNMENT, message)
