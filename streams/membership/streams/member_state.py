"""Decide what a member of a streams group sends next, and what an answer changes: pure functions.

Theory of operation. The broker computes which tasks each member is to have, and each heartbeat may
bring that (`told`). The stream thread brings its tasks to it, and acknowledges: only then
heartbeats report it (`owned`), so that the broker gives a task to another member only after it was
committed and closed here. A member has its epoch from its latest answer; it commits with it.

    phase         event                                  next          what follows
    UNJOINED,     `start_joining`                        JOINING       a heartbeat with epoch 0 and
    LOST, or any                                                       no tasks, at once
    JOINING       answer                                 JOINED        the tasks told are offered,
                                                                       once the group is ready
    JOINED        answer with other tasks or endpoints,  JOINED        they are offered
                  or that the application is to end
    JOINED        `mark_offer_taken`                           JOINED        nothing: the tasks move
    JOINED        `acknowledge_tasks`                    JOINED        a heartbeat with the tasks
                                                                       owned, at once
    JOINED        `repeat_offer`                         JOINED        the tasks told are offered
                                                                       once more, and reported
    JOINED        UNKNOWN_MEMBER_ID,                     LOST          all tasks are dropped without
                  FENCED_MEMBER_EPOCH, or a thread                     a commit, and the member
                  that makes no turn                                   joins anew
    any           no answer                              the same      the next heartbeat repeats
                                                                       all that the answer may have
                                                                       acknowledged, and what is
                                                                       told is in doubt
    JOINED,       an answer that tells no tasks          the same      the group is asked which the
    in doubt                                                           member has, which may be
                                                                       other ones: they are offered
    any           an answer to what was sent before      the same      it is ignored
                  the last `start_joining`

An offer is what was told and is not yet taken. While a group is not ready (its assignment is
delayed, topics are missing), a member that has just joined is offered nothing. The group tells
tasks to a member that joins, and once when they change, whatever the member reports.
Source: StreamsMembershipManager, StreamsGroupHeartbeatRequestManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from streams.membership.protocol import EndpointTasks
from streams.membership.streams.statuses import GroupStatus, find_shutdown_reason, is_group_ready
from streams.membership.streams.task_roles import NO_ROLES, TasksByRole

JOINING_EPOCH, LEAVING_EPOCH = 0, -1
_NO_ENDPOINT_EPOCH = -1
"""The epoch of endpoints of a member that was told none: the group's is higher."""


class MemberPhase(StrEnum):
    """Names the phases of a membership; see the module's table."""

    UNJOINED = "UNJOINED"
    JOINING = "JOINING"
    JOINED = "JOINED"
    LOST = "LOST"


@dataclass(frozen=True, slots=True)
class EndpointsTold:
    """Holds the tasks behind each endpoint of the group, and the epoch of this knowledge."""

    epoch: int = _NO_ENDPOINT_EPOCH
    tasks: Mapping[str, EndpointTasks] = field(default_factory=lambda: MappingProxyType({}))


NO_ENDPOINTS = EndpointsTold()


@dataclass(frozen=True, slots=True)
class MemberHeartbeat:
    """Represents a heartbeat to be sent: a join with epoch 0, or a report.

    `owned` None: the tasks are as they were reported.
    """

    join_number: int
    epoch: int
    owned: TasksByRole | None
    endpoint_epoch: int = _NO_ENDPOINT_EPOCH

    @property
    def is_join(self) -> bool:
        """Return whether it brings all that the group is to know of the member."""
        return self.epoch == JOINING_EPOCH


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """Represents the answer to a heartbeat that was accepted.

    `told` and `endpoints` are None where the answer does not tell them: they have not changed.
    """

    epoch: int
    interval_ms: int
    told: TasksByRole | None = None
    statuses: tuple[GroupStatus, ...] = ()
    endpoints: EndpointsTold | None = None


@dataclass(frozen=True, slots=True)
class TaskMembership:
    """Represents a membership at one moment.

    `reported` are the tasks that the group knows the member has; None if that is not certain.
    `epoch` is that of the last answer, also once the membership is lost and while the member joins
    anew: a group refuses offsets of an epoch that is over, and takes those without one from anybody
    as soon as it has no members.
    """

    phase: MemberPhase = MemberPhase.UNJOINED
    join_number: int = 0
    epoch: int = JOINING_EPOCH
    owned: TasksByRole = NO_ROLES
    reported: TasksByRole | None = None
    told: TasksByRole = NO_ROLES
    is_told_certain: bool = True
    """Whether no answer was lost since the tasks were told, which may have told other ones."""
    endpoints: EndpointsTold = NO_ENDPOINTS
    taken: tuple[TasksByRole, EndpointsTold] | None = None
    """The tasks and endpoints that were taken last; None since the join."""
    statuses: tuple[GroupStatus, ...] = ()
    is_sent: bool = False
    """Whether a heartbeat with epoch 0 may have reached the group."""

    @property
    def is_member(self) -> bool:
        """Return whether the group had this member when it answered last."""
        return self.phase is MemberPhase.JOINED

    @property
    def has_offer(self) -> bool:
        """Return whether the tasks or endpoints that were told last are still to be taken."""
        if self.phase is not MemberPhase.JOINED:
            return False
        if find_shutdown_reason(self.statuses):  # it comes with the assignment
            return True
        if self.taken is None:
            has_tasks = not (self.told.is_empty and self.owned.is_empty)
            return has_tasks or is_group_ready(self.statuses)
        return self.taken != (self.told, self.endpoints)

    @property
    def is_heartbeat_due(self) -> bool:
        """Return whether a heartbeat is to be sent at once: to join, or to acknowledge."""
        if self.phase is MemberPhase.JOINING:
            return True
        return self.phase is MemberPhase.JOINED and self.owned != self.reported


def start_joining(state: TaskMembership) -> TaskMembership:
    """Return the state of a member that has no tasks, and joins the group or joins it again."""
    return TaskMembership(
        MemberPhase.JOINING,
        state.join_number + 1,
        state.epoch,
        is_sent=state.is_sent or state.is_member,
    )


def build_heartbeat(state: TaskMembership) -> MemberHeartbeat:
    """Return the heartbeat that a member in this state sends, which joins or is joined."""
    if state.phase is MemberPhase.JOINING:
        return MemberHeartbeat(state.join_number, JOINING_EPOCH, NO_ROLES)
    return MemberHeartbeat(
        state.join_number,
        state.epoch,
        None if state.owned == state.reported else state.owned,
        state.endpoints.epoch,
    )


def apply_sent_heartbeat(state: TaskMembership, sent: MemberHeartbeat) -> TaskMembership:
    """Return the state once a heartbeat may have reached the group, and before its answer."""
    if sent.join_number != state.join_number:
        return state
    return replace(state, is_sent=True, reported=None if sent.owned is not None else state.reported)


def apply_answer(
    state: TaskMembership, sent: MemberHeartbeat, answer: HeartbeatAnswer
) -> TaskMembership:
    """Return the state after the answer to a heartbeat; the same if it was of an earlier join."""
    if sent.join_number != state.join_number or state.phase is MemberPhase.LOST:
        return state
    reported = state.reported if sent.owned is None else sent.owned
    return replace(
        state,
        phase=MemberPhase.JOINED,
        epoch=answer.epoch,
        reported=reported,
        told=state.told if answer.told is None else answer.told,
        is_told_certain=state.is_told_certain or answer.told is not None,
        endpoints=state.endpoints if answer.endpoints is None else answer.endpoints,
        statuses=answer.statuses,
    )


def apply_lost_answer(state: TaskMembership) -> TaskMembership:
    """Return the state after a heartbeat whose answer did not come: nothing told is certain.

    The group may have moved on by one epoch. It takes the member's former one once more only with
    the tasks that the member has.
    """
    return replace(state, reported=None, is_told_certain=False)


def apply_description(
    state: TaskMembership, sent: MemberHeartbeat, epoch: int, assigned: TasksByRole
) -> TaskMembership:
    """Return the state once the group has described the member that sent the last heartbeat.

    A description of another epoch is not of this moment, and what is told stays in doubt.
    """
    is_outdated = sent.join_number != state.join_number or epoch != state.epoch
    if is_outdated or state.phase is not MemberPhase.JOINED:
        return state
    return replace(state, told=assigned, is_told_certain=True)


def apply_loss(state: TaskMembership, sent: MemberHeartbeat) -> TaskMembership:
    """Return the state once the group has refused a member as unknown, or one that left it.

    A join that is refused so goes on.
    """
    if sent.join_number != state.join_number or state.phase is not MemberPhase.JOINED:
        return state
    return replace(state, phase=MemberPhase.LOST)


def repeat_offer(state: TaskMembership) -> TaskMembership:
    """Return the member's state with the last told tasks offered again, and all tasks to report.

    The stream thread may have failed between taking an offer and acknowledging it.
    """
    return replace(state, taken=None, reported=None)


def mark_offer_taken(state: TaskMembership) -> TaskMembership:
    """Return the member's state after the stream thread has adopted the tasks that were offered."""
    return replace(state, taken=(state.told, state.endpoints))


def acknowledge_tasks(state: TaskMembership, owned: TasksByRole) -> TaskMembership:
    """Return the state once the stream thread has exactly the tasks `owned`."""
    if state.phase is not MemberPhase.JOINED:
        return state
    return replace(state, owned=owned)
