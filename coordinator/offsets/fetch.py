"""Answer OffsetFetch from what is committed, or UNSTABLE_OFFSET_COMMIT during a transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from coordinator.errors import Code
from coordinator.offsets.state import NO_OFFSET, NO_OFFSETS, OffsetState


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """Represents the answer for one partition of an OffsetFetch.

    Offset -1: nothing is committed, or `code` says why it can't be told.
    """

    topic: str
    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    code: Code = Code.NONE


def fetch_offsets(
    state: OffsetState,
    group_id: str,
    partitions: Iterable[tuple[str, int, UUID | None]],
    *,
    require_stable: bool,
) -> list[FetchedOffset]:
    """Return the committed offsets of these partitions, in their order.

    With `require_stable` a partition with a pending offset gets UNSTABLE_OFFSET_COMMIT. A topic id
    must be that of the committed offset.
    """
    group = state.committed.get(group_id, NO_OFFSETS)
    pending_producers = state.pending_producers.get(group_id, ()) if require_stable else ()
    fetched = []
    for topic, partition, topic_id in partitions:
        if pending_producers and (topic, partition) in pending_producers:
            code = Code.UNSTABLE_OFFSET_COMMIT
            fetched.append(FetchedOffset(topic, partition, code=code))
            continue
        committed_offset = group.get((topic, partition))
        if committed_offset is None or (
            topic_id and committed_offset.topic_id and committed_offset.topic_id != topic_id
        ):
            fetched.append(FetchedOffset(topic, partition))
            continue
        fetched.append(
            FetchedOffset(
                topic,
                partition,
                committed_offset.offset,
                committed_offset.leader_epoch,
                committed_offset.metadata,
            )
        )
    return fetched


def fetch_all_offsets(
    state: OffsetState, group_id: str, *, require_stable: bool
) -> list[FetchedOffset]:
    """Return every committed offset of a group, by topic and partition."""
    partitions = [
        (*partition, None) for partition in sorted(state.committed.get(group_id, NO_OFFSETS))
    ]
    return fetch_offsets(state, group_id, partitions, require_stable=require_stable)
