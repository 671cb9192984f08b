"""Test which epoch a member of a streams group commits with, and which tasks stay its own."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any, cast

import pytest

from streams.common.host import SpawnedThread, SystemHost
from streams.errors import TaskMigrated
from streams.membership import coordinator_connection
from streams.membership.connection import BrokerConnection
from streams.membership.group_member import Membership, MembershipSignal, MemberTimeouts
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.membership.streams import member as member_module
from streams.membership.streams.heartbeat_request import MemberMetadata
from streams.membership.streams.member import StreamsProtocolMember
from streams.membership.streams.member_state import (
    HeartbeatAnswer,
    TaskMembership,
    apply_answer,
    apply_loss,
    build_heartbeat,
    mark_offer_taken,
)
from streams.membership.streams.task_roles import TasksByRole

ONE = TasksByRole(frozenset({"0_0"}))
ASSIGNED = AssignmentInfo(("0_0",), (("in", 0),))


class ThreadlessHost(SystemHost):
    """Starts no threads."""

    def spawn_thread(self, name: str, target: Callable[[], None]) -> SpawnedThread:
        return Thread(target=target)


class IdleConnection:
    """Sends nothing."""

    def close(self) -> None: ...


@pytest.fixture
def member() -> StreamsProtocolMember:
    """Return a member whose heartbeats are never sent: a test gives it the answers."""
    return StreamsProtocolMember(
        MemberMetadata("group", "member", "process", cast(Any, None), 300_000),
        "instance",
        open_connection=lambda _: cast(BrokerConnection, IdleConnection()),
        fetch_partition_counts=dict,
        timeouts=MemberTimeouts(45_000, 3_000, 300_000, 300_000),
        host=ThreadlessHost(),
    )


def change(member: StreamsProtocolMember, epoch: int) -> None:
    """Let the group answer the heartbeat that is due, and the thread take what it is told."""

    def apply(state: TaskMembership) -> TaskMembership:
        told = HeartbeatAnswer(epoch, 5_000, ONE)
        return mark_offer_taken(apply_answer(state, build_heartbeat(state), told))

    member._heartbeats.change_state(apply)


def lose(member: StreamsProtocolMember) -> None:
    member._heartbeats.change_state(lambda state: apply_loss(state, build_heartbeat(state)))


def join(member: StreamsProtocolMember, generation: int) -> None:
    member.start_joining(SubscriptionInfo((), generation=generation))


@pytest.fixture
def joined(member: StreamsProtocolMember) -> StreamsProtocolMember:
    """Return a member that has joined with epoch 5, and has a task."""
    join(member, -1)
    change(member, 5)
    member.acknowledge_assignment(ASSIGNED)
    return member


def test_a_member_that_is_lost_or_joins_anew_commits_with_the_epoch_that_is_over(
    joined: StreamsProtocolMember,
) -> None:
    lose(joined)
    assert joined.read_current_signal_or_raise() is MembershipSignal.LOST
    assert joined.current_membership == Membership(5, "member")
    join(joined, -1)
    assert joined.current_membership == Membership(5, "member")
    change(joined, 9)
    assert joined.current_membership == Membership(9, "member")


def test_a_member_without_an_epoch_commits_nothing(
    member: StreamsProtocolMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []

    def send(*given: object) -> bool:
        sent.append(given)
        return True

    monkeypatch.setattr(member_module, "try_commit_offsets", send)
    monkeypatch.setattr(coordinator_connection, "find_coordinator", lambda *_, **__: ("host", 1))
    assert not member.try_commit_offsets([])
    assert sent == []


def test_tasks_are_the_members_own_as_long_as_it_does_not_join_anew(
    joined: StreamsProtocolMember,
) -> None:
    change(joined, 6)
    assert joined.has_kept_tasks_until(5, 6)
    join(joined, 5)  # what was told is offered once more
    change(joined, 7)
    assert joined.has_kept_tasks_until(5, 7)


def test_tasks_of_a_membership_that_was_lost_are_not_the_members_own(
    joined: StreamsProtocolMember,
) -> None:
    lose(joined)
    join(joined, -1)
    change(joined, 9)
    assert not joined.has_kept_tasks_until(5, 9)
    joined.acknowledge_assignment(ASSIGNED)
    assert joined.has_kept_tasks_until(9, 10)


def test_a_thread_that_has_tasks_of_a_lost_membership_drops_them_before_it_joins(
    joined: StreamsProtocolMember,
) -> None:
    lose(joined)
    with pytest.raises(TaskMigrated):
        join(joined, 5)
    assert joined.read_current_signal_or_raise() is MembershipSignal.LOST
