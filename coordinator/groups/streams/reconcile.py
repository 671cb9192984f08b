"""Reconcile a member with its target assignment, one step at a time.

A member goes in, a new member comes out. It never has an active task that another member has, nor a
task that another member of its process has in another role, and never gets to the target's epoch
before it has revoked what the target takes from it:

    state         what happens at a heartbeat                                            then
    STABLE        nothing, while its epoch is the target's                               STABLE
    UNREVOKED     it doesn't say what it has, or has some of what is to be revoked       UNREVOKED
    any           something of what it has isn't in the target, and it has not said      UNREVOKED
                  that it gave it up: it keeps its epoch and is told what is left
    any           nothing is to be revoked; all that the target adds is free: it gets    STABLE
                  that, and the target's epoch
    any           the same, but some of it is still held elsewhere: it gets the epoch    UNRELEASED
                  and what is free, and asks again at its next heartbeat

A task may change its role without being revoked: a standby or warm-up task that becomes active is
kept until the active task is free; an active task that becomes a standby is one at once.

What a member has is what it says in its heartbeat (`owned`); to say nothing acknowledges nothing.
Source: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from coordinator.errors import Code, Refused
from coordinator.groups.streams.record_types import StreamsMemberState
from coordinator.groups.streams.state import StreamsGroup, StreamsGroupMember
from coordinator.groups.streams.tasks import (
    NO_TASKS,
    NOTHING_ASSIGNED,
    AssignedTasks,
    TaskId,
    TaskRoles,
    TaskSet,
)


def reconcile_tasks(
    group: StreamsGroup,
    member: StreamsGroupMember,
    target_epoch: int,
    target: TaskRoles,
    owned: TaskRoles | None,
) -> StreamsGroupMember:
    """Return the member after one step towards its target; the very same if there is none to take.

    Raises Refused: FENCED_MEMBER_EPOCH for a member in a state that this broker doesn't know,
    unless it has nothing.
    """
    epoch = member.epoch
    match member.state:
        case StreamsMemberState.STABLE if epoch == target_epoch:
            return member
        case StreamsMemberState.UNREVOKED_TASKS:
            if may_own_any(owned, member.revoking):
                return member
            epoch += 1
        case StreamsMemberState.UNKNOWN:
            if owned is None or owned:
                raise Refused(
                    Code.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            epoch = target_epoch
        case _:
            pass
    return _build_member_with_next_assignment(group, member, epoch, target_epoch, target, owned)


def may_own_any(owned: TaskRoles | None, tasks: AssignedTasks) -> bool:
    """Return whether a member reports any of these tasks, or doesn't report what it has."""
    return owned is None or tasks.overlaps(owned)


@dataclass(slots=True)
class _RoleChange:
    """Holds what of one role a member keeps, has to revoke, newly gets, and has to wait for."""

    kept: set[TaskId]
    revoking: set[TaskId]
    added: set[TaskId]
    must_wait: bool

    @classmethod
    def between(
        cls, assigned: Iterable[TaskId], wanted: TaskSet, held_elsewhere: TaskSet
    ) -> _RoleChange:
        current = frozenset(assigned)
        missing = wanted - current
        return cls(
            kept=set(current & wanted),
            revoking=set(current - wanted),
            added=set(missing - held_elsewhere),
            must_wait=not missing.isdisjoint(held_elsewhere),
        )

    def grant_added_tasks(self, tasks: Iterable[TaskId]) -> set[TaskId]:
        """Move tasks from those added to those kept; return which those were."""
        granted = self.added.intersection(tasks)
        self.added -= granted
        self.kept |= granted
        return granted


def _build_member_with_next_assignment(
    group: StreamsGroup,
    member: StreamsGroupMember,
    epoch: int,
    target_epoch: int,
    target: TaskRoles,
    owned: TaskRoles | None,
) -> StreamsGroupMember:
    """Return the member with what it keeps, has to revoke and newly gets, and its next state."""
    assigned = member.assigned
    active = _RoleChange.between(
        assigned.active, target.active, _find_unavailable_active(group, member, target.active)
    )
    standby = _RoleChange.between(
        assigned.standby, target.standby, _find_standby_of_process(group, member, target.standby)
    )
    warmup = _RoleChange.between(
        assigned.warmup, target.warmup, _find_warmup_of_process(group, member, target.warmup)
    )
    standby.grant_added_tasks(assigned.active)
    standby.revoking -= warmup.grant_added_tasks(assigned.standby)
    warmup.revoking -= standby.grant_added_tasks(assigned.warmup)
    standby.revoking -= target.active
    warmup.revoking -= target.active
    revoking = AssignedTasks(
        _select_epochs(assigned.active, active.revoking),
        frozenset(standby.revoking),
        frozenset(warmup.revoking),
    )
    must_revoke = bool(revoking) and may_own_any(owned, revoking)
    promoted = NO_TASKS if must_revoke else frozenset(active.added)
    standby.kept |= (assigned.standby & target.active) - promoted
    warmup.kept |= (assigned.warmup & target.active) - promoted
    kept_active = _select_epochs(assigned.active, active.kept)
    if must_revoke:
        return replace(
            member,
            state=StreamsMemberState.UNREVOKED_TASKS,
            previous_epoch=member.epoch,
            epoch=epoch,
            assigned=AssignedTasks(kept_active, frozenset(standby.kept), frozenset(warmup.kept)),
            revoking=revoking,
        )
    must_wait = active.must_wait or standby.must_wait or warmup.must_wait
    state = StreamsMemberState.UNRELEASED_TASKS if must_wait else StreamsMemberState.STABLE
    return replace(
        member,
        state=state,
        previous_epoch=member.epoch,
        epoch=target_epoch,
        assigned=AssignedTasks(
            {**kept_active, **dict.fromkeys(sorted(active.added), target_epoch)},
            frozenset(standby.kept | standby.added),
            frozenset(warmup.kept | warmup.added),
        ),
        revoking=NOTHING_ASSIGNED,
    )


def _select_epochs(epochs: Mapping[TaskId, int], tasks: set[TaskId]) -> dict[TaskId, int]:
    return {task: epoch for task, epoch in epochs.items() if task in tasks}


# Tasks that are not free


def _find_unavailable_active(
    group: StreamsGroup, member: StreamsGroupMember, wanted_tasks: TaskSet
) -> frozenset[TaskId]:
    """Return which active tasks somebody has, or another member of the process in another role."""
    own = member.assigned
    return frozenset(
        task
        for task in wanted_tasks
        if task in group.active_owners
        or (task not in own.standby and _is_on_process(group, group.standby_holders, task, member))
        or (task not in own.warmup and _is_on_process(group, group.warmup_holders, task, member))
    )


def _find_standby_of_process(
    group: StreamsGroup, member: StreamsGroupMember, wanted_tasks: TaskSet
) -> frozenset[TaskId]:
    """Return which standby tasks another member of the process has, in whatever role."""
    own = member.assigned
    return frozenset(
        task
        for task in wanted_tasks
        if (task not in own.active and _is_active_on_process(group, task, member))
        or _is_on_process(group, group.standby_holders, task, member)
        or (task not in own.warmup and _is_on_process(group, group.warmup_holders, task, member))
    )


def _find_warmup_of_process(
    group: StreamsGroup, member: StreamsGroupMember, wanted_tasks: TaskSet
) -> frozenset[TaskId]:
    """Return which warm-up tasks another member of the process has, in whatever role."""
    own = member.assigned
    return frozenset(
        task
        for task in wanted_tasks
        if _is_active_on_process(group, task, member)
        or (task not in own.standby and _is_on_process(group, group.standby_holders, task, member))
        or _is_on_process(group, group.warmup_holders, task, member)
    )


def _is_active_on_process(group: StreamsGroup, task: TaskId, member: StreamsGroupMember) -> bool:
    owner = group.members.get(group.active_owners.get(task, ""))
    return owner is not None and owner.process_id == member.process_id


def _is_on_process(
    group: StreamsGroup,
    holders: Mapping[TaskId, set[str]],
    task: TaskId,
    member: StreamsGroupMember,
) -> bool:
    """Return whether a member of the same process, or the member itself, has a task in a role."""
    return any(
        group.members[holder].process_id == member.process_id
        for holder in holders.get(task, ())
        if holder in group.members
    )
