"""OffsetFetch: what is committed, or 88 while an open transaction holds an offset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from coordinator.errors import Code
from coordinator.offsets.state import NO_OFFSET, OffsetState


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """Offset -1: nothing is committed, or `code` says why it can't be told."""

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
    """The offsets asked for, in their order. A topic id must be that of the committed offset."""
    group = state.committed.get(group_id, {})
    held = state.holders.get(group_id, ()) if require_stable else ()
    fetched = []
    for topic, partition, topic_id in partitions:
        if held and (topic, partition) in held:
            code = Code.UNSTABLE_OFFSET_COMMIT
            fetched.append(FetchedOffset(topic, partition, code=code))
            continue
        kept = group.get((topic, partition))
        if kept is None or (topic_id and kept.topic_id and kept.topic_id != topic_id):
            fetched.append(FetchedOffset(topic, partition))
            continue
        fetched.append(
            FetchedOffset(topic, partition, kept.offset, kept.leader_epoch, kept.metadata)
        )
    return fetched


def fetch_all_offsets(
    state: OffsetState, group_id: str, *, require_stable: bool
) -> list[FetchedOffset]:
    """Every committed offset of a group, by topic and partition."""
    wanted = [(*partition, None) for partition in sorted(state.committed.get(group_id, {}))]
    return fetch_offsets(state, group_id, wanted, require_stable=require_stable)
