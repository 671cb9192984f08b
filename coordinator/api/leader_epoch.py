"""Check leader epochs: the one leader has epoch 0 from the first batch on.

The epoch that a client knows is checked as in Kafka (KIP-320), so that a client that comes from
another cluster, or has stale metadata, gets an error.
"""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.log.partition import PartitionLog

LEADER_EPOCH = 0
UNKNOWN_EPOCH = -1


def check_leader_epoch(epoch: int) -> None:
    """Raise Refused if the leader epoch in a request isn't the present one.

    FENCED_LEADER_EPOCH for an older one, UNKNOWN_LEADER_EPOCH for a newer one; -1 stands for a
    client that sends none.
    """
    if epoch in (UNKNOWN_EPOCH, LEADER_EPOCH):
        return
    code = Code.UNKNOWN_LEADER_EPOCH if epoch > LEADER_EPOCH else Code.FENCED_LEADER_EPOCH
    raise Refused(code, f"{epoch}, not {LEADER_EPOCH}")


def end_offset_of_epoch(partition: PartitionLog, epoch: int) -> int | None:
    """Return the offset at which the batches of an epoch end, or None if the epoch isn't 0."""
    return partition.end_offset if epoch == LEADER_EPOCH else None
