"""Leader epochs, where there is one leader for ever: the epoch is 0 from the first batch on.

What a client knows of the leader is checked as in Kafka (KIP-320), so that a client that comes from
another cluster, or has mixed up its metadata, notices.
"""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.log.partition import Partition

LEADER_EPOCH = 0
UNKNOWN_EPOCH = -1


def check_leader_epoch(current: int) -> None:
    """Refused: FENCED_LEADER_EPOCH for an older epoch than ours, UNKNOWN_LEADER_EPOCH for a newer
    one. -1: the client doesn't say."""
    if current in (UNKNOWN_EPOCH, LEADER_EPOCH):
        return
    code = Code.UNKNOWN_LEADER_EPOCH if current > LEADER_EPOCH else Code.FENCED_LEADER_EPOCH
    raise Refused(code, f"{current}, not {LEADER_EPOCH}")


def end_offset_of_epoch(partition: Partition, epoch: int) -> int | None:
    """Where the batches of that epoch end; None for an epoch that hasn't been."""
    return partition.end_offset if epoch == LEADER_EPOCH else None
