"""Plant bugs in the consumer groups of KIP-848, each with the checkers that must see it.

They are put in from outside, as those of transactions are (see `tests.simulation.bugs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from coordinator.groups.consumer import advance, apply, leave, membership, reconcile, target
from coordinator.groups.consumer import validate as consumer_validate
from coordinator.groups.consumer.membership import ConsumerMembership
from coordinator.groups.consumer.record_types import ConsumerGroupSaved
from coordinator.groups.consumer.state import FIRST_EPOCH
from coordinator.shard.decision import LogRecordOrigin
from tests.simulation.bugs import replaced
from tests.simulation.checkers.checker import Checker
from tests.simulation.groups.checkers import (
    Convergence,
    MemberEpochs,
    Patience,
    Revocation,
    Stale,
)
from tests.simulation.history import Bug
from tests.simulation.world import World


@contextmanager
def a_partition_is_given_before_it_is_given_up(world: World) -> Iterator[None]:
    """Make a member get its target at once, even partitions that another one owns.

    The state would not take it: that check is switched off as well.
    """

    def follow(original: Any) -> Any:
        def step(member: Any, *rest: Any, **named: Any) -> Any:
            *before, owned, _ = rest
            return original(member, *before, owned, lambda topic_id, index: None, **named)

        return step

    def take(original: Any) -> Any:
        def take_from_anyone(*arguments: Any) -> None:
            *rest, origin = arguments
            original(*rest, LogRecordOrigin(origin.offset, replaying=True))

        return take_from_anyone

    with (
        replaced(advance, "reconcile_member", follow),
        replaced(apply, "set_partition_owner", take),
    ):
        yield


def silence_is_taken_for_consent(world: World) -> AbstractContextManager[None]:
    """Make a heartbeat without owned partitions count as the end of its revocations."""

    def make(original: Any) -> Any:
        return lambda owned, partitions: owned is not None and original(owned, partitions)

    return replaced(reconcile, "may_own_any", make)


def a_part_given_up_is_taken_for_all(world: World) -> AbstractContextManager[None]:
    """Make one revoked partition count as the end of all of the member's revocations."""

    def make(original: Any) -> Any:
        def owns_all(owned: Any, partitions: Any) -> bool:
            if owned is None:
                return True
            return all(
                original(owned, {topic_id: {index: 0}})
                for topic_id, epochs in partitions.items()
                for index in epochs
            )

        return owns_all

    return replaced(reconcile, "may_own_any", make)


def whoever_was_fenced_commits(world: World) -> AbstractContextManager[None]:
    """Make the broker ignore the epoch of a commit."""

    def make(original: Any) -> Any:
        def validate(group: Any, committer: Any, *rest: Any, **named: Any) -> None:
            member = group.members.get(committer.member_id)
            if member is not None:
                original(group, replace(committer, generation=member.epoch), *rest, **named)

        return validate

    return replaced(consumer_validate, "validate_offset_commit", make)


def a_partition_that_has_moved_on_is_committed(world: World) -> AbstractContextManager[None]:
    """Make the broker accept commits of an older epoch for any partition of the topic."""

    def make(original: Any) -> Any:
        return lambda member, topic_id, index: 0

    return replaced(consumer_validate, "find_assigned_epoch", make)


def a_group_begins_again_when_a_member_is_fenced(world: World) -> AbstractContextManager[None]:
    """Make a group start with its former epochs again when a member is fenced."""

    def make(original: Any) -> Any:
        def fence(*arguments: Any) -> Any:
            return [
                replace(record, epoch=FIRST_EPOCH + 1)
                if isinstance(record, ConsumerGroupSaved)
                else record
                for record in original(*arguments)
            ]

        return fence

    return replaced(leave, "build_fencing_records", make)


def a_member_is_told_the_group_s_epoch(world: World) -> AbstractContextManager[None]:
    """Make the broker tell a member the group's epoch before its partitions are assigned."""

    def make(original: Any) -> Any:
        def beat(group: Any, *rest: Any) -> Any:
            found = original(group, *rest)
            return found._replace(response=found.response._replace(epoch=group.epoch + 1))

        return beat

    return replaced(membership, "join_or_stay_in_group", make)


def sessions_are_not_counted_after_a_restart(world: World) -> AbstractContextManager[None]:
    """Make a restarted broker start no session timeout, so that dead members stay."""
    return replaced(ConsumerMembership, "start_member_timers", lambda _: lambda self, shard: None)


@contextmanager
def a_heartbeat_does_not_prolong_the_session(world: World) -> Iterator[None]:
    """Make a session timeout restart only with heartbeats that move the member on."""

    def make(original: Any) -> Any:
        def beat(*arguments: Any) -> Any:
            found = original(*arguments)
            return found if found.records else found._replace(effects=())

        return beat

    with (
        replaced(membership, "join_or_stay_in_group", make),
        replaced(membership, "decide_unchanged_heartbeat", make),
    ):
        yield


def topics_that_change_are_not_noticed(world: World) -> AbstractContextManager[None]:
    """Make the group ignore changed topics, so that new partitions have no owner."""
    return replaced(advance, "compute_metadata_hash", lambda _: lambda names, topics: 0)


def nobody_gets_what_a_member_leaves_behind(world: World) -> AbstractContextManager[None]:
    """Make a member's leave start no new epoch."""

    def make(original: Any) -> Any:
        def fence(*arguments: Any) -> Any:
            found = original(*arguments)
            return [record for record in found if not isinstance(record, ConsumerGroupSaved)]

        return fence

    return replaced(leave, "build_fencing_records", make)


def a_target_gives_a_partition_to_two(world: World) -> AbstractContextManager[None]:
    """Make the assignor give one partition to two members, who then wait for each other."""

    def make(original: Any) -> Any:
        def assign(wanted: Any, counts: Any) -> Any:
            found = original(wanted, counts)
            first, *others = sorted(found)
            shares = {member: found[first] | found[member] for member in others[:1]}
            return {**found, **shares}

        return assign

    assignors = {name: make(assign) for name, assign in target.ASSIGNORS.items()}
    return replaced(target, "ASSIGNORS", lambda _: assignors)


PROTOCOLS = frozenset({"consumer"})  # of the histories in which the bugs can show
BUGS: dict[Bug, tuple[type[Checker], ...]] = {
    a_partition_is_given_before_it_is_given_up: (Revocation,),
    silence_is_taken_for_consent: (Revocation,),
    a_part_given_up_is_taken_for_all: (Revocation,),
    whoever_was_fenced_commits: (Stale,),
    a_partition_that_has_moved_on_is_committed: (Stale,),
    a_group_begins_again_when_a_member_is_fenced: (MemberEpochs,),
    a_member_is_told_the_group_s_epoch: (MemberEpochs,),
    sessions_are_not_counted_after_a_restart: (Convergence,),
    a_heartbeat_does_not_prolong_the_session: (Patience, Convergence),
    topics_that_change_are_not_noticed: (Convergence,),
    nobody_gets_what_a_member_leaves_behind: (Convergence,),
    a_target_gives_a_partition_to_two: (Convergence,),
}
