"""Plant bugs in what happens to a whole group, each with the checkers that must see it.

Bugs concern a group's conversion from one protocol to the other, its deletion, and the end of its
offsets, of deleted topics too.

They are put in from outside, as those of transactions are (see `tests.simulation.bugs`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from coordinator.groups import offset_expiry
from coordinator.groups import offsets as group_offsets
from coordinator.groups.deleted_topics import DeletedTopicCleanup
from coordinator.groups.migration import conversion, heartbeat, upgrade
from coordinator.offsets import deletion
from coordinator.shard.decision import Decision
from tests.simulation.bugs import replaced
from tests.simulation.checkers.checker import Checker
from tests.simulation.groups.checkers import (
    Commits,
    Completed,
    Convergence,
    MemberEpochs,
    Revocation,
)
from tests.simulation.history import Bug
from tests.simulation.world import World


def an_upgrade_forgets_who_has_what(world: World) -> AbstractContextManager[None]:
    """Make an upgrade give a classic member's partitions to the consumer that joins."""

    def make(original: Any) -> Any:
        def convert(*arguments: Any) -> Any:
            return replace(original(*arguments), assigned={})

        return convert

    return replaced(upgrade, "convert_classic_member", make)


def a_downgrade_begins_at_the_first_generation(world: World) -> AbstractContextManager[None]:
    """Make a downgrade forget the epochs of the consumer group."""

    def make(original: Any) -> Any:
        def downgrade(*arguments: Any) -> Any:
            made = original(*arguments)
            made.generation = 1
            return made

        return downgrade

    return replaced(conversion, "convert_to_classic_group", make)


def classic_members_are_not_told_to_join(world: World) -> AbstractContextManager[None]:
    """Make classic members of a mixed group never join again, so that they keep old partitions."""
    return replaced(heartbeat, "must_rejoin", lambda _: lambda group, member: False)


def a_group_with_members_is_deleted(world: World) -> AbstractContextManager[None]:
    """Make DeleteGroups delete a group that has members."""

    def make(original: Any) -> Any:
        def holding_of(shard: Any, group_id: str) -> Any:
            found = original(shard, group_id)
            return None if found is None else replace(found, is_empty=True)

        return holding_of

    return replaced(group_offsets, "find_offset_policy", make)


def offsets_of_a_subscribed_topic_are_deleted(world: World) -> AbstractContextManager[None]:
    """Make OffsetDelete delete the offsets of a subscribed topic and answer with a refusal."""

    def make(original: Any) -> Any:
        def delete(state: Any, group_id: str, holding: Any, partitions: Any) -> Any:
            everything = replace(holding, is_subscribed=lambda topic: False)
            done = deletion.decide_offset_deletion(state, group_id, everything, partitions)
            said = original(state, group_id, holding, partitions)
            return Decision(done.records, said.response)

        return delete

    return replaced(group_offsets, "decide_offset_deletion", make)


def offsets_expire_at_once(world: World) -> AbstractContextManager[None]:
    """Make offsets expire without regard to their retention time."""

    def make(original: Any) -> Any:
        def expire(state: Any, group_id: str, holding: Any, found: Any, _: int, now_ms: int) -> Any:
            return original(state, group_id, holding, found, 0, now_ms)

        return expire

    return replaced(offset_expiry, "build_expiry_tombstones", make)


def offsets_of_a_deleted_topic_stay(world: World) -> AbstractContextManager[None]:
    """Make the offsets of a deleted topic stay, so that its namesake is read from there on."""
    sweep = "forget_topics_in_slices"
    return replaced(group_offsets.GroupOffsets, sweep, lambda _: lambda self, topics: iter(()))


def a_shard_that_is_back_forgets_no_topic(world: World) -> AbstractContextManager[None]:
    """Make a shard miss topics that were deleted while it was loading or led by another broker."""
    return replaced(
        group_offsets.GroupOffsets,
        "forget_topics_deleted_during_load",
        lambda _: lambda self, shard: None,
    )


def the_name_of_a_deleted_topic_is_kept(world: World) -> AbstractContextManager[None]:
    """Make the broker keep a deleted topic's name although no group has its offsets any more."""
    return replaced(DeletedTopicCleanup, "free_deleted_names", lambda _: lambda self, swept: None)


# Of the histories in which the bugs can show.
PROTOCOLS = frozenset({"mixed"})
BUGS: dict[Bug, tuple[type[Checker], ...]] = {
    an_upgrade_forgets_who_has_what: (Revocation,),
    a_downgrade_begins_at_the_first_generation: (MemberEpochs,),
    classic_members_are_not_told_to_join: (Convergence,),
    a_group_with_members_is_deleted: (MemberEpochs,),
    offsets_of_a_subscribed_topic_are_deleted: (Commits,),
    offsets_expire_at_once: (Commits,),
    offsets_of_a_deleted_topic_stay: (Commits,),
    a_shard_that_is_back_forgets_no_topic: (Completed,),
    the_name_of_a_deleted_topic_is_kept: (Completed,),
}
