"""Test that streams groups keep their laws in random histories, and that planted bugs are seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coordinator.assignors.streams import sticky
from coordinator.assignors.streams.process_load import ProcessLoad
from coordinator.groups.streams import (
    endpoints,
    heartbeat,
    leave,
    membership,
    reconcile,
    target,
    unchanged,
)
from coordinator.groups.streams import records as streams_records
from coordinator.groups.streams.record_types import (
    Record,
    StreamsCurrentAssignmentSaved,
    StreamsGroupSaved,
)
from coordinator.groups.streams.tasks import NO_TASKS
from coordinator.shard.decision import Decision
from tests.unit.coordinator.groups.streams import histories
from tests.unit.coordinator.groups.streams.histories import StreamsGroupHistory, run_history

STEPS = 200
SEEDS = 12
BUG_SEEDS = 25


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_holds_in_the_history_of_a_seed(seed: int) -> None:
    assert run_history(seed, STEPS) is None


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_holds_in_the_history_of_a_small_group(seed: int) -> None:
    assert run_history(1_000 + seed, STEPS, members_max=4) is None


def test_a_history_decides_heartbeats_at_a_glance_and_tells_endpoints() -> None:
    history = StreamsGroupHistory(1, members_max=4)
    for _ in range(STEPS):
        history.step()
        history.check()
    assert history.unchanged_count > 10
    assert history.endpoint_count > STEPS


# Bugs: each takes what it plants itself with.

Plant = Callable[[Any, str, Any], None]


def give_tasks_out_before_they_are_revoked(plant: Plant) -> None:
    plant(reconcile, "may_own_any", lambda owned, tasks: False)


def leave_the_epoch_as_it_is_when_a_member_goes(plant: Plant) -> None:
    right = leave.fence_streams_member

    def fence(*arguments: Any) -> Decision[Record, None]:
        decision = right(*arguments)
        kept = [each for each in decision.records if not isinstance(each, StreamsGroupSaved)]
        return Decision(kept, None, decision.effects)

    plant(membership, "fence_streams_member", fence)


def forget_who_has_a_task(plant: Plant) -> None:
    right = sticky.TaskHolder
    plant(target, "TaskHolder", lambda process_id, *_: right(process_id))


def put_standby_tasks_beside_their_active_task(plant: Plant) -> None:
    plant(ProcessLoad, "has_task", lambda self, task: False)


def write_no_standby_tasks(plant: Plant) -> None:
    right = streams_records.encode_streams_record

    def encode(record: Record) -> tuple[bytes, bytes | None]:
        if isinstance(record, StreamsCurrentAssignmentSaved):
            record = replace(record, assigned=replace(record.assigned, standby=NO_TASKS))
        return right(record)

    plant(streams_records, "encode_streams_record", encode)


def accept_every_commit(plant: Plant) -> None:
    plant(histories, "validate_streams_offset_commit", lambda *_, **__: None)


def give_every_member_its_target_at_once(plant: Plant) -> None:
    def reconcile_at_once(group: Any, member: Any, epoch: int, goal: Any, owned: Any) -> Any:
        assigned = replace(
            member.assigned, active=dict.fromkeys(goal.active, epoch), standby=goal.standby
        )
        return replace(member, epoch=epoch, previous_epoch=member.epoch, assigned=assigned)

    plant(heartbeat, "reconcile_tasks", reconcile_at_once)


def go_back_to_the_first_epoch(plant: Plant) -> None:
    right = StreamsGroupSaved
    plant(heartbeat, "StreamsGroupSaved", lambda group_id, epoch, *rest: right(group_id, 2, *rest))


def keep_members_of_another_epoch(plant: Plant) -> None:
    right = unchanged.has_no_streams_news

    def has_no_news(group: Any, command: Any, context: Any) -> bool:
        epoch = group.members[command.member_id].epoch
        same = replace(group, epoch=group.target_epoch)
        return epoch == group.target_epoch and right(same, command, context)

    plant(histories, "has_no_streams_news", has_no_news)


def follow_no_member(plant: Plant) -> None:
    plant(endpoints, "is_not", lambda one, other: other is None)


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        (give_tasks_out_before_they_are_revoked, "two committers"),
        (leave_the_epoch_as_it_is_when_a_member_goes, "settled"),
        (forget_who_has_a_task, "moved"),
        (put_standby_tasks_beside_their_active_task, "standbys"),
        (write_no_standby_tasks, "reload"),
        (accept_every_commit, "two committers"),
        (give_every_member_its_target_at_once, "is given to"),
        (go_back_to_the_first_epoch, "epochs"),
        (keep_members_of_another_epoch, "unchanged"),
        (follow_no_member, "endpoints"),
    ],
)
def test_a_planted_bug_is_seen(
    monkeypatch: pytest.MonkeyPatch, bug: Callable[[Plant], None], words: str
) -> None:
    bug(monkeypatch.setattr)
    seen: list[str] = []
    for seed in range(BUG_SEEDS):
        found = run_history(seed, STEPS, members_max=6)
        if found is not None and words in found:
            return
        seen.append(str(found))
    raise AssertionError(f"{words!r} was not seen, but {seen}")
