"""Count the rebalances of groups to which the broker assigns, and log how long each takes.

A rebalance begins with an epoch of the group, and ends when all members have reached the target
assignment. Epochs that begin in between belong to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sized
from enum import Enum
from typing import Protocol

from coordinator.clock import Clock
from coordinator.groups.counters import GroupCounters

logger = logging.getLogger(__name__)

_SETTLED = ("Stable", "Empty")  # names of phases, in whichever kind of group


class AssignedGroup(Protocol):
    """Represents a group with epochs, a consumer group or a streams group."""

    @property
    def group_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def target_epoch(self) -> int: ...
    @property
    def members(self) -> Sized: ...
    @property
    def phase(self) -> Enum: ...


class RebalanceStart(Protocol):
    """Holds since when a group isn't stable, or None if it is."""

    unstable_since_ms: int | None


def count_epoch_start(
    counters: GroupCounters,
    group: AssignedGroup,
    start: RebalanceStart,
    cause: str,
    member_ids: Iterable[str],
    now_ms: int,
) -> None:
    """Count an epoch of a group by its cause; `member_ids`: who brought it."""
    counters.count_rebalance_start(group.group_id, cause)
    description = " ".join([cause, *member_ids])
    logger.info("%s: epoch %d begins: %s", group.group_id, group.epoch, description)
    if start.unstable_since_ms is None:
        start.unstable_since_ms = now_ms


def count_epoch_settled(
    counters: GroupCounters, group: AssignedGroup, start: RebalanceStart | None, clock: Clock
) -> None:
    """Count a rebalance as complete if the group is Stable or Empty by now."""
    if start is None or start.unstable_since_ms is None or group.phase.value not in _SETTLED:
        return
    elapsed_ms = clock.now_ms() - start.unstable_since_ms
    counters.count_rebalance_end(group.group_id, elapsed_ms, clock.monotonic_ms())
    log_arguments = group.group_id, len(group.members), group.target_epoch, elapsed_ms
    logger.info("%s: all %d members are at epoch %d, after %d ms", *log_arguments)
    start.unstable_since_ms = None
