"""Plant bugs in the group coordinator, each of which breaks a promise that a checker watches.

They are put in from outside, as those of transactions are (see `tests.simulation.bugs`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

from coordinator.errors import Refused
from coordinator.groups import offsets as group_offsets
from coordinator.groups.classic import join, membership
from coordinator.groups.classic import sync as classic_sync
from coordinator.groups.classic.effects import KeepJoinState
from coordinator.groups.classic.group_transition import GroupTransition
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase, GroupSaved
from coordinator.offsets import apply as offset_apply
from coordinator.shard.decision import Decision
from coordinator.shard.shard import Shard
from tests.simulation.bugs import replaced
from tests.simulation.checkers.checker import Checker
from tests.simulation.groups.checkers import (
    Commits,
    Convergence,
    Epochs,
    Ownership,
    Recorded,
    Reload,
    Zombies,
)
from tests.simulation.groups.members import assigning
from tests.simulation.groups.members.assigning import COOPERATIVE, STICKY
from tests.simulation.history import Bug
from tests.simulation.world import World


def a_former_generation_commits(world: World) -> AbstractContextManager[None]:
    """Make the broker accept commits of any former member."""

    def make(original: Any) -> Any:
        def validate(group: Any, committer: Any, **rest: Any) -> None:
            if group is not None:
                committer = committer._replace(generation=group.generation)
            original(group, committer, **rest)

        return validate

    return replaced(group_offsets, "validate_offset_commit", make)


def an_instance_that_was_replaced_commits(world: World) -> AbstractContextManager[None]:
    """Make the broker accept commits of a replaced static member's former id."""

    def make(original: Any) -> Any:
        def validate(group: Any, committer: Any, **rest: Any) -> None:
            if group is not None and committer.instance_id is not None:
                known = group.find_static_member_id(committer.instance_id)
                committer = committer._replace(member_id=known or committer.member_id)
            original(group, committer, **rest)

        return validate

    return replaced(group_offsets, "validate_offset_commit", make)


def a_rebalance_keeps_the_generation(world: World) -> AbstractContextManager[None]:
    """Make a rebalance keep the generation, so that members of the round before pass."""

    def make(original: Any) -> Any:
        def complete_join(self: GroupTransition) -> None:
            generation = self.group.generation
            original(self)
            if generation > 2 and self.group.members:
                self.group.generation = generation

        return complete_join

    return replaced(GroupTransition, "complete_join", make)


def an_assignment_is_told_before_it_is_written(world: World) -> AbstractContextManager[None]:
    """Make SyncGroup answer before the assignment is written, so that a crash undoes it."""

    def make(original: Any) -> Any:
        def execute(self: Any, group_id: str, decision: Any, *rest: Any, **named: Any) -> Any:
            kept = [saved for saved in decision.records if not _is_assigned(saved)]
            later = [saved for saved in decision.records if _is_assigned(saved)]
            if not later:
                return original(self, group_id, decision, *rest, **named)
            effects = [
                effect._replace(is_saved=False) if isinstance(effect, KeepJoinState) else effect
                for effect in decision.effects
            ]
            told = decision._replace(records=kept, effects=effects)
            response = original(self, group_id, told, *rest, **named)
            shard = self._shards.find_shard(group_id)
            for saved in later:
                world.loop.after_ms(700, _write, world, world.life, shard, saved)
            return response

        return execute

    return replaced(ClassicMembership, "execute_decision", make)


def _changed_group(decision: Any) -> ClassicGroup:
    [group] = [each.group for each in decision.effects if isinstance(each, KeepJoinState)]
    return group


def _is_assigned(record: Any) -> bool:
    return isinstance(record, GroupSaved) and bool(record.members)


def _write(world: World, life: int, shard: Any, saved: GroupSaved) -> None:
    if world.life == life:
        group = shard.state.classic.get(saved.group_id)
        with world.observe_action(), suppress(Refused):
            shard.log.execute_decision(Decision([saved], None))
            if group is not None:  # who is in it has moved on
                shard.state.classic[saved.group_id] = group


def a_second_assignment_takes_the_place_of_the_first(
    world: World,
) -> AbstractContextManager[None]:
    """Make a leader's second SyncGroup replace the assignment of the same generation."""

    def make(original: Any) -> Any:
        def sync(group: Any, command: Any, *rest: Any) -> Any:
            decision = original(group, command, *rest)
            changed = _changed_group(decision)
            is_leader = changed.leader == command.member_id
            if decision.response is not None and is_leader:
                members = changed.members
                for member_id, member in tuple(members.items()):
                    assigned = command.assignments.get(member_id, b"")
                    members[member_id] = replace(member, assignment=assigned)
            return decision

        return sync

    return replaced(membership, "sync_group", make)


def everybody_is_handed_the_leader_s_share(world: World) -> AbstractContextManager[None]:
    """Make SyncGroup give the leader's assignment to every member."""

    def make(original: Any) -> Any:
        return lambda group, member_id: original(group, group.leader)

    return replaced(classic_sync, "build_sync_answer", make)


def sessions_are_not_counted_after_a_restart(world: World) -> AbstractContextManager[None]:
    """Make a restarted broker wait for ever for a member that died while it was down."""
    return replaced(
        ClassicMembership, "restart_sessions_after_load", lambda _: lambda self, shard: None
    )


def nobody_is_told_that_a_member_has_left(world: World) -> AbstractContextManager[None]:
    """Make a member's leave start no rebalance, so that its partitions keep their owner."""

    def make(original: Any) -> Any:
        def leave_quietly(group: Any, *rest: Any) -> Any:
            with replaced(
                GroupTransition, "rebalance_or_complete_join", lambda _: lambda self, cause: None
            ):
                return original(group, *rest)

        return leave_quietly

    return replaced(membership, "leave_group", make)


def a_leader_that_joins_again_changes_nothing(world: World) -> AbstractContextManager[None]:
    """Make a leader's rejoin start no rebalance, so that new partitions have no owner."""

    def make(original: Any) -> Any:
        def join_again(draft: GroupTransition, command: Any, member: Any) -> Any:
            is_leader = member.member_id == draft.group.leader
            if draft.group.phase is ClassicGroupPhase.STABLE and is_leader:
                return draft.build_join_answer(member.member_id)
            return original(draft, command, member)

        return join_again

    return replaced(join, "rejoin_member", make)


def a_commit_is_acknowledged_though_it_was_not_written(
    world: World,
) -> AbstractContextManager[None]:
    """Make the broker acknowledge a commit that the disk refused."""

    def make(original: Any) -> Any:
        def execute(self: Any, decision: Any) -> Any:
            try:
                return original(self, decision)
            except Refused:
                if isinstance(decision.response, list):  # of offsets: a code for each
                    return decision.response
                raise

        return execute

    return replaced(Shard, "execute_decision", make)


def an_older_commit_wins_when_the_log_is_read(world: World) -> AbstractContextManager[None]:
    """Make a restarted broker take the first of two records of an offset."""

    def make(original: Any) -> Any:
        def apply(state: Any, record: Any, origin: Any) -> None:
            key = getattr(record, "key", None)
            if origin.replaying and key is not None and hasattr(record, "offset"):
                group_id, topic, partition = key
                if (topic, partition) in state.committed.get(group_id, {}):
                    return
            original(state, record, origin)

        return apply

    return replaced(offset_apply, "apply_record", make)


def a_group_s_end_is_forgotten(world: World) -> AbstractContextManager[None]:
    """Make the broker not log the last member's leaving, so that a restart brings it back."""

    def make(original: Any) -> Any:
        def save(self: GroupTransition) -> None:
            if self.group.members:
                original(self)

        return save

    return replaced(GroupTransition, "save_group", make)


def a_cooperative_leader_takes_at_once(world: World) -> AbstractContextManager[None]:
    """Make a cooperative leader assign a partition before its former owner has revoked it."""

    def make(original: Any) -> Any:
        return {**original, COOPERATIVE: original[STICKY]}

    return replaced(assigning, "ASSIGNORS", make)


PROTOCOLS = frozenset({"eager", "cooperative"})  # of the histories in which the bugs can show
# Each with the checkers that must each see it alone.
BUGS: dict[Bug, tuple[type[Checker], ...]] = {
    a_former_generation_commits: (Zombies,),
    an_instance_that_was_replaced_commits: (Zombies,),
    a_rebalance_keeps_the_generation: (Epochs, Ownership),
    an_assignment_is_told_before_it_is_written: (Epochs,),
    a_second_assignment_takes_the_place_of_the_first: (Ownership,),
    everybody_is_handed_the_leader_s_share: (Ownership, Convergence),
    sessions_are_not_counted_after_a_restart: (Convergence,),
    nobody_is_told_that_a_member_has_left: (Convergence,),
    a_leader_that_joins_again_changes_nothing: (Convergence,),
    a_commit_is_acknowledged_though_it_was_not_written: (Commits,),
    an_older_commit_wins_when_the_log_is_read: (Commits, Reload),
    a_group_s_end_is_forgotten: (Recorded,),
    a_cooperative_leader_takes_at_once: (Ownership,),
}
