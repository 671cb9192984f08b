"""Test a member that knows old offsets, because another has its tasks by now."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.thread_state import ThreadState
from tests.unit.streams.runtime.world import World, build_counting_topology

INPUT = Partition("in", 0)


def cut_off(path: Path) -> tuple[World, World]:
    """Return a member that has to restore what another has committed, and its heir elsewhere."""
    first = World(build_counting_topology(), path / "first")
    first.load(*map(str, range(10)))
    first.run_until(first.consumed)
    member = World(build_counting_topology(), path / "member", kafka=first.kafka)
    heir = World(build_counting_topology(), path / "heir", kafka=first.kafka)
    return member, heir


def work(heir: World) -> None:
    heir.load(*map(str, range(10)))
    heir.run_until(heir.consumed)


def run_until_restored(world: World) -> int:
    """Run until the task runs, and return the count that its store holds."""
    found: list[int] = []

    def is_running() -> bool:
        for task in world.loop.tasks.values():
            if task.state is TaskState.RUNNING:
                found.append(task.steps.context.get_store("c").entry("k")[0])
        return bool(found)

    world.run_until(is_running)
    return found[0]


def test_state_that_another_member_has_committed_since_is_no_reason_to_end(tmp_path: Path) -> None:
    member, heir = cut_off(tmp_path)
    member.script.do_before("restore.poll_records", lambda: work(heir))
    assert run_until_restored(member) == 20
    assert member.loop.counters.recoveries == 1


def test_the_member_waits_for_a_broker_that_can_tell(tmp_path: Path) -> None:
    member, heir = cut_off(tmp_path)
    member.script.do_before("restore.poll_records", lambda: work(heir))
    member.script.fail("member.fetch_committed_offsets", OutcomeUnknown("no answer"), at=2)
    assert run_until_restored(member) == 20
    assert member.script.list_unmade_failures() == []


def test_offsets_that_nobody_has_committed_since_are_refused(tmp_path: Path) -> None:
    member, heir = cut_off(tmp_path)
    old = member.kafka.committed_offsets[INPUT]
    work(heir)
    member.kafka.committed_offsets[INPUT] = old
    with pytest.raises(StreamsError, match="older than its state"):
        member.run_until(member.consumed)
    assert ThreadState.RUNNING not in member.states
