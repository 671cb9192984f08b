"""Offsets of a topic that has been deleted: tombstones for all of them, pending ones too."""

from __future__ import annotations

from coordinator.offsets.state import OffsetForgotten, OffsetState
from coordinator.shard.decision import Decision


def forget_topic(state: OffsetState, topic: str) -> Decision[OffsetForgotten, None]:
    """Every offset of the topic in one shard."""
    committed = {
        (group_id, name, partition)
        for group_id, group in state.committed.items()
        for name, partition in group
    }
    pending = {key for offsets in state.pending.values() for key in offsets}
    keys = sorted(key for key in committed | pending if key[1] == topic)
    return Decision([OffsetForgotten(*key) for key in keys], None)
