"""Test that tasks whose internal topic is gone end with the reason, and do not retry until late."""

from __future__ import annotations

from pathlib import Path

import pytest

from state.memory import MemoryDisk
from streams import StreamsError
from streams.errors import OutcomeUnknown, TaskOutcomeUnknown
from tests.unit.streams.runtime.restored import CHANGELOG, Restoring
from tests.unit.streams.runtime.world import World, build_counting_topology

GONE = StreamsError("changelog 'a-c-changelog' is not on the brokers")


class LosingWorld(World):
    """Represents a world in which a look at the internal topics finds that one is gone."""

    looks = 0

    def check_internal_topics(self) -> None:
        self.looks += 1
        raise GONE


@pytest.mark.parametrize(
    "error", [OutcomeUnknown("?"), TaskOutcomeUnknown("0_0", "?", is_alone=True)]
)
def test_a_failure_is_looked_at_for_a_lost_topic_at_once(tmp_path: Path, error: Exception) -> None:
    world = LosingWorld(build_counting_topology(), tmp_path)
    world.load("1")
    world.script.fail("producer.commit_transaction", error)
    with pytest.raises(StreamsError, match="is not on the brokers"):
        world.run_until(world.consumed)


def test_a_thread_without_tasks_looks_for_no_lost_topic(tmp_path: Path) -> None:
    """Its version may not be admitted yet, and then its topics are not created."""
    world = LosingWorld(build_counting_topology(), tmp_path)
    world.load("1")
    world.script.fail("member.enter_assigned_generation", OutcomeUnknown("?"))
    world.run_until(world.consumed)
    assert world.looks == 0


def test_a_restore_that_finds_no_changelog_looks_for_it() -> None:
    def find_it_gone() -> None:
        raise GONE

    world = Restoring(check_topics=find_it_gone)
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("unknown partition"))
    world.restorer.add_tasks([world.task(world.store(disk=MemoryDisk()))])
    with pytest.raises(StreamsError, match="is not on the brokers"):
        world.until_ready()
