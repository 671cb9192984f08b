"""Test that deletions of tens of thousands of offsets run in slices and survive a stop."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.offsets import TOMBSTONES_PER_STEP
from coordinator.offsets.commit import CommittingMember, OffsetCommitCommand, OffsetToCommit
from coordinator.shard.slices import SLICE_MS, run_to_completion
from tests.unit.coordinator.api.client import Client, run
from tests.unit.coordinator.log.logs import StillClock
from tests.unit.coordinator.world import World, code_of

FETCH, DESCRIBE, CREATE, DELETE, DELETE_GROUPS, OFFSET_DELETE = 9, 15, 19, 20, 42, 47
COUNT = 5_000
GROUP, OTHER = "large", "small"


def commit(client: Client, group_id: str, topic: str, count: int) -> None:
    for start in range(0, count, 1_000):
        some = range(start, min(count, start + 1_000))
        offsets = [OffsetToCommit(topic, partition, 7) for partition in some]
        codes = client.broker.coordinators.groups.offsets.commit_offsets(
            OffsetCommitCommand(group_id, offsets),
            CommittingMember(),
            unknown_group_code=Code.ILLEGAL_GENERATION,
        )
        assert set(codes) == {Code.NONE}


def offset_count(client: Client, group_id: str) -> int:
    """Return the number of offsets that the broker has of a group."""
    [shard] = client.broker.coordinators.groups.shards
    return len(shard.state.offsets.committed.get(group_id, ()))


def fetch_code(client: Client, group_id: str) -> int:
    answer = client.ask(FETCH, 7, group_id=group_id, topics=None, require_stable=True)
    return int(answer.error_code)


def take_slice(client: Client) -> bool:
    """Run the calls that are due in the next turn of the loop; return False if there are none."""
    scheduler = client.scheduler
    due = scheduler.pending(0)
    scheduler.waiting = [each for each in scheduler.waiting if each[0] != 0]
    for callback in due:
        callback()
    return bool(due)


async def answer_after_slices(
    client: Client,
    answer: Awaitable[Any],
    look: Callable[[], None] = lambda: None,
) -> Any:
    """Run slices to the end, calling `look` before each one, and return the response."""
    task = asyncio.ensure_future(answer)
    slices = 0
    await asyncio.sleep(0)
    while not task.done():
        look()
        assert take_slice(client), "it waits, and nothing is going on"
        slices += 1
        for _ in range(3):
            await asyncio.sleep(0)
    assert slices
    return await task


def test_a_large_group_is_deleted_in_slices_and_nobody_sees_half_of_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        commit(client, GROUP, "words", COUNT)
        commit(client, OTHER, "words", 10)
        left: list[int] = []

        def look() -> None:
            left.append(offset_count(client, GROUP))
            if left[-1]:
                assert fetch_code(client, GROUP) == Code.COORDINATOR_LOAD_IN_PROGRESS
            assert fetch_code(client, OTHER) == Code.NONE

        answer, again = (
            asyncio.ensure_future(client.ask_later(DELETE_GROUPS, 1, groups_names=names))
            for names in (["none", GROUP], [GROUP])
        )
        found = await answer_after_slices(client, answer, look)
        assert {each.group_id: each.error_code for each in found.results} == {
            GROUP: Code.NONE,
            "none": Code.GROUP_ID_NOT_FOUND,
        }
        assert again.done()
        assert (await again).results[0].error_code == Code.COORDINATOR_LOAD_IN_PROGRESS
        assert left == sorted(left, reverse=True)
        assert 0 < left[1] < left[0] < COUNT
        assert fetch_code(client, GROUP) == Code.NONE
        assert [
            each.group_id for each in client.broker.coordinators.groups.list_groups_unless_loading()
        ] == [OTHER]

    run(scenario())


def test_a_group_whose_deletion_fails_in_a_later_slice_is_served_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        commit(client, GROUP, "words", COUNT)
        log = client.partition("__consumer_offsets")
        append = log.append_internal

        def refuse(batch: bytes) -> int:
            raise Refused(Code.KAFKA_STORAGE_ERROR, "planned")

        answer = client.ask_later(DELETE_GROUPS, 1, groups_names=[GROUP])
        task = asyncio.ensure_future(answer)
        await asyncio.sleep(0)
        log.append_internal = refuse  # type: ignore[method-assign]
        take_slice(client)
        assert (await task).results[0].error_code == Code.NOT_COORDINATOR
        log.append_internal = append  # type: ignore[method-assign]
        assert 0 < offset_count(client, GROUP) < COUNT
        assert fetch_code(client, GROUP) == Code.NONE
        again = client.ask_later(DELETE_GROUPS, 1, groups_names=[GROUP])
        assert (await answer_after_slices(client, again)).results[0].error_code == Code.NONE

    run(scenario())


def test_many_offsets_are_deleted_in_slices(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("words", COUNT)
        commit(client, GROUP, "words", COUNT)
        partitions = [{"partition_index": index} for index in range(COUNT + 1)]
        answer = client.ask_later(
            OFFSET_DELETE,
            0,
            group_id=GROUP,
            topics=[{"name": "words", "partitions": partitions}],
        )
        found = await answer_after_slices(
            client, answer, lambda: check(fetch_code(client, GROUP) == Code.NONE)
        )
        assert found.error_code == Code.NONE
        codes = [each.error_code for each in found.topics[0].partitions]
        assert codes == [*([Code.NONE] * COUNT), Code.UNKNOWN_TOPIC_OR_PARTITION]
        assert offset_count(client, GROUP) == 0

    run(scenario())


def check(condition: bool) -> None:
    assert condition


def create(client: Client, name: str) -> int:
    topics = [
        {"name": name, "num_partitions": 1, "replication_factor": 1}
        | {"assignments": (), "configs": ()}
    ]
    answer = client.ask(CREATE, 4, topics=topics, timeout=1_000, validate_only=False)
    return int(answer.topics[0].error_code)


def test_a_topic_is_deleted_with_its_offsets_before_its_name_is_free_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        for topic in ("words", "lines", "letters"):
            client.create(topic)
            commit(client, GROUP, topic, COUNT)

        def look() -> None:
            assert create(client, "lines") == Code.TOPIC_ALREADY_EXISTS
            assert fetch_code(client, GROUP) == Code.NONE

        answer = client.ask_later(DELETE, 5, topic_names=["words", "lines"], timeout=1_000)
        found = await answer_after_slices(client, answer, look)
        assert [each.error_code for each in found.responses] == [Code.NONE, Code.NONE]
        assert offset_count(client, GROUP) == COUNT  # of letters
        assert create(client, "lines") == Code.NONE

    run(scenario())


def forgetting(data: Path) -> list[str]:
    """Return the deleted topics whose offsets a start would look for."""
    found: list[str] = json.loads((data / "topics.json").read_text())["forgetting"]
    return found


def test_a_topic_deleted_while_its_offsets_are_loaded_is_free_when_they_are(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("words")
        commit(client, GROUP, "words", COUNT)
        groups = client.broker.coordinators.groups
        groups.resign_shard(0)
        answer = client.ask(DELETE, 5, topic_names=["words"], timeout=1_000)
        assert answer.responses[0].error_code == Code.NONE
        take_slice(client)
        assert forgetting(tmp_path) == ["words"]
        assert create(client, "words") == Code.TOPIC_ALREADY_EXISTS
        load_slice = groups.elect_shard(0)
        while not load_slice():
            pass
        assert 0 < offset_count(client, GROUP) < COUNT
        assert create(client, "words") == Code.TOPIC_ALREADY_EXISTS
        while take_slice(client):
            pass
        assert forgetting(tmp_path) == []
        assert create(client, "words") == Code.NONE
        assert offset_count(client, GROUP) == 0

    run(scenario())


class SteppingClock(StillClock):
    """Stands in for a clock whose monotonic time moves by `step_ms` at each call."""

    step_ms = 0
    elapsed_ms = 0

    def monotonic_ms(self) -> int:
        self.elapsed_ms += self.step_ms
        return self.elapsed_ms


def test_many_deletions_at_once_take_one_slice_of_a_turn_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = SteppingClock()
        client = Client(tmp_path, clock=clock)
        groups = [f"g{index}" for index in range(20)]
        for group_id in groups:
            commit(client, group_id, "words", 1_000)
        clock.step_ms = 1
        answers = [
            asyncio.ensure_future(client.ask_later(DELETE_GROUPS, 1, groups_names=[group_id]))
            for group_id in groups
        ]
        await asyncio.sleep(0)
        left = sum(offset_count(client, group_id) for group_id in groups)
        assert left >= 20_000 - SLICE_MS * TOMBSTONES_PER_STEP
        while take_slice(client):
            assert len(client.scheduler.pending(0)) <= 1
            now = sum(offset_count(client, group_id) for group_id in groups)
            assert left - now <= SLICE_MS * TOMBSTONES_PER_STEP
            left = now
            await asyncio.sleep(0)
        assert left == 0
        for answer in answers:
            assert (await answer).results[0].error_code == Code.NONE

    run(scenario())


@pytest.mark.parametrize("slices", [0, 1])
def test_offsets_of_a_topic_go_after_a_kill_in_the_middle_of_its_deletion(
    tmp_path: Path, slices: int
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path / "data")
        for topic in ("words", "lines"):
            client.create(topic)
            commit(client, GROUP, topic, COUNT)
        answer = asyncio.ensure_future(
            client.ask_later(DELETE, 5, topic_names=["words"], timeout=1_000)
        )
        await asyncio.sleep(0)
        for _ in range(slices):
            take_slice(client)
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
        assert COUNT < offset_count(client, GROUP) < 2 * COUNT
        assert not answer.done()
        answer.cancel()
        again = Client(tmp_path / "killed")
        while take_slice(again):
            pass
        assert forgetting(tmp_path / "killed") == []
        assert create(again, "words") == Code.NONE
        assert offset_count(again, GROUP) == COUNT
        again.broker.close()
        third = Client(tmp_path / "killed")
        commit(third, GROUP, "words", 3)
        third.broker.close()
        assert offset_count(Client(tmp_path / "killed"), GROUP) == COUNT + 3

    run(scenario())


@pytest.mark.parametrize("killed_after", range(5))
def test_a_group_that_is_killed_in_the_middle_of_its_deletion_can_be_deleted_again(
    killed_after: int,
) -> None:
    world = World()
    for partition in range(1_000):
        world.commit(7, partition=partition)
    log = world.group_logs[world.groups.partition_of("counts")]
    log.fail_after = killed_after
    expected = Code.NONE if killed_after > 4 else Code.KAFKA_STORAGE_ERROR
    assert code_of(world.delete_group, "counts") is expected
    before = {
        key
        for shard in world.groups.shards
        for key in shard.state.offsets.committed.get("counts", ())
    }
    world.restart()
    after = {
        key
        for shard in world.groups.shards
        for key in shard.state.offsets.committed.get("counts", ())
    }
    assert after == before
    assert len(after) == 1_000 - 250 * killed_after
    assert [group.group_id for group in world.groups.list_groups_unless_loading()] == ["counts"]
    log.fail_after = None
    world.delete_group("counts")
    assert world.groups.list_groups_unless_loading() == []
    world.restart()
    assert world.groups.list_groups_unless_loading() == []


def test_a_group_that_moves_away_in_the_middle_of_its_deletion_is_free_when_it_is_back() -> None:
    world = World()
    for partition in range(1_000):
        world.commit(7, partition=partition)
    index = world.groups.partition_of("counts")
    work = world.groups.offsets.delete_group_in_slices("counts")
    next(work)
    world.groups.resign_shard(index)
    with pytest.raises(Refused) as refused:
        run_to_completion(work)
    assert refused.value.code is Code.NOT_COORDINATOR
    load_slice = world.groups.elect_shard(index)
    while not load_slice():
        pass
    assert world.offset(partition=999) == 7
