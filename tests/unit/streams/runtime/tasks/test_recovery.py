"""Test what each error makes the loop lose, and that no record is lost or doubled by it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from state.errors import DirectoryLocked, StateError, StoreSerdeError
from streams import App, Processor, Record, serdes
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, SerdeError, StreamsError, TaskCorrupted, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.membership.group_member import MembershipSignal
from streams.membership.protocol import AssignmentInfo
from streams.runtime.tasks.context import COMMIT_ORIGIN
from streams.runtime.tasks.recovery_errors import to_recovery_error
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState
from streams.topology.build import Topology
from tests.unit.streams.runtime.world import (
    CHANGELOG,
    World,
    build_counting_topology,
    build_mapping_topology,
)

CALLS = [
    "producer.begin_transaction",
    "consumer.poll_records",
    "consumer.next_offsets",
    "producer.poll_delivery_reports",
    "produce out",
    f"produce {CHANGELOG}",
    "producer.flush",
    "producer.send_offsets_to_transaction",
    "producer.commit_transaction",
]


def loaded(state: Path, guarantee: str = "exactly_once_v2") -> World:
    """Return a world with thirty records for one task, which commits after every ten."""
    world = World(build_counting_topology(), state, guarantee=guarantee)
    world.load(*map(str, range(30)))
    return world


def assert_exact(world: World) -> None:
    """Assert that the committed counts only grow and that the last one counts every record."""
    (counts,) = world.read_counts().values()
    assert counts == sorted(set(counts))
    assert counts[-1] == 30
    assert world.script.list_unmade_failures() == []


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [OutcomeUnknown("?"), TaskMigrated("!")], ids=["unknown", "gone"])
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once"])
def test_no_record_is_lost_or_doubled_by_an_error_at_any_call(
    tmp_path: Path, call: str, after: bool, error: Exception, guarantee: str
) -> None:
    world = loaded(tmp_path, guarantee)
    world.script.fail(call, error, at=2, after=after)
    world.run_until(world.consumed)
    assert_exact(world)


def test_no_record_is_lost_or_doubled_by_several_errors_in_one_run(tmp_path: Path) -> None:
    world = loaded(tmp_path)
    world.script.fail("producer.commit_transaction", OutcomeUnknown("1"), after=True)
    world.script.fail("producer.commit_transaction", OutcomeUnknown("2"), at=2)
    world.script.fail("member.fetch_committed_offsets", ConnectionLost("3"), at=2)
    world.script.fail("restore.poll_records", OutcomeUnknown("4"), at=1)
    world.script.fail("producer.init", OutcomeUnknown("5"), at=3)
    world.script.fail("producer.send_offsets_to_transaction", TaskMigrated("6"), at=3)
    world.script.fail("member.enter_assigned_generation", OutcomeUnknown("7"), at=2)
    world.script.fail("producer.flush", OutcomeUnknown("8"), at=4, after=True)
    world.run_until(world.consumed)
    assert_exact(world)
    assert world.loop.counters.recoveries == 8


def test_a_checker_of_exactness_that_sees_a_doubled_record(tmp_path: Path) -> None:
    """Test that `assert_exact` refuses output that occurs twice, as without transactions."""
    world = World(build_counting_topology(), tmp_path, guarantee="at_least_once")
    world.load(*map(str, range(30)))
    world.script.fail("member.try_commit_offsets", ConnectionLost("gone"), at=2)
    world.run_until(world.consumed)
    with pytest.raises(AssertionError):
        assert_exact(world)


@pytest.mark.parametrize("call", CALLS)
def test_an_unknown_outcome_replaces_the_producer_and_does_not_rejoin(
    tmp_path: Path, call: str
) -> None:
    world = loaded(tmp_path)
    world.script.fail(call, OutcomeUnknown("?"), at=2)
    world.run_until(world.consumed)
    assert world.script.calls.count("member.enter_assigned_generation") == 1
    assert len(world.producers) == 2
    assert world.producers[0].discarded


def test_after_an_unknown_outcome_the_producer_comes_before_the_offsets_are_read_again(
    tmp_path: Path,
) -> None:
    world = loaded(tmp_path)
    world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), after=True)
    world.run_until(world.consumed)
    lost = world.script.calls.index("producer.commit_transaction")
    names = (
        "producer.discard",
        "consumer.remove_partitions",
        "producer.init",
        "member.fetch_committed_offsets",
    )
    after = [
        call for call in world.script.calls[lost:] if call in (*names, "consumer.add_partitions")
    ]
    assert after[:5] == [*names, "consumer.add_partitions"]


def test_a_commit_that_took_effect_without_an_answer_is_not_repeated(tmp_path: Path) -> None:
    world = loaded(tmp_path)
    world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), after=True)
    world.run_until(world.consumed)
    assert world.read_counts() == {"k": [10, 20, 30]}
    # The changelog restored the writes that the disk had missed.
    assert world.loop.counters.restored_records == 1


def after_first_commit(world: World, happens: Callable[[Task], None]) -> Callable[[], bool]:
    """Return a condition that all is consumed; the first commit calls `happens` with the task."""
    seen: list[Task] = []

    def consumed() -> bool:
        if world.kafka.committed_offsets and not seen:
            seen.append(world.loop.tasks["0_0"])
            happens(seen[0])
        return world.consumed()

    return consumed


def test_a_rollback_keeps_the_task_its_directory_and_its_databases_open(tmp_path: Path) -> None:
    world = loaded(tmp_path)
    before: list[tuple[Task, object]] = []
    done = after_first_commit(
        world, lambda task: before.append((task, task.stores.logged["c"].store))
    )
    world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), at=2)
    kept: list[bool] = []

    def kept_at_the_end() -> bool:
        if done():
            task = world.loop.tasks["0_0"]
            kept.append((task, task.stores.logged["c"].store) == before[0])
            with pytest.raises(DirectoryLocked):
                world.directory.lock_task("0_0")
        return bool(kept)

    world.run_until(kept_at_the_end)
    assert kept == [True]
    assert_exact(world)
    of_changelog, of_inputs = 2, 2  # at the start, and after the rollback
    assert world.script.calls.count("admin.fetch_topic_ids") == of_changelog + of_inputs


def test_a_changelog_made_again_while_it_is_written_is_refused_and_not_filled(
    tmp_path: Path,
) -> None:
    """Test that no commit rests on a changelog that lacks what was committed before."""
    world = loaded(tmp_path)
    made_again = {CHANGELOG: "the id of another topic"}
    done = after_first_commit(world, lambda task: world.kafka.topic_ids.update(made_again))
    world.script.fail("producer.flush", OutcomeUnknown("it went back"), at=2)
    with pytest.raises(StreamsError, match="made again: it is not the one that store 'c'"):
        world.run_until(done)
    assert world.kafka.committed_offsets[Partition("in", 0)].offset == 10


def test_a_changelog_made_again_is_refused_by_a_worker_that_never_had_the_store(
    tmp_path: Path,
) -> None:
    """Test that committed offsets tell a changelog from one that is long enough and another."""
    world = loaded(tmp_path / "first")
    world.run_until(world.consumed)
    world.loop.close()
    world.kafka.topic_ids[CHANGELOG] = "the id of another topic"
    elsewhere = World(build_counting_topology(), tmp_path / "second", kafka=world.kafka)
    elsewhere.load("31")
    with pytest.raises(StreamsError, match="is another topic of the same name: it was deleted"):
        elsewhere.run_until(elsewhere.consumed)


def test_only_the_stores_that_are_corrupt_are_rebuilt(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.load(*map(str, range(30)), partition=0)
    world.load(*map(str, range(30)), key="other", partition=1)
    corrupt = TaskCorrupted("0_0", ["c"], "a block has the wrong checksum")
    world.script.fail("producer.flush", corrupt, at=2)
    world.run_until(lambda: world.consumed(0) and world.consumed(1))
    assert {key: counts[-1] for key, counts in world.read_counts().items()} == {
        "k": 30,
        "other": 30,
    }
    # Partition 0 is replayed from the start of its changelog, 1 is where it was.
    assert world.loop.counters.restored_records == 1
    assert world.loop.counters.tasks_corrupted == 1
    assert world.member.subscribed == [()]


def test_tasks_that_moved_are_closed_and_the_member_rejoins_without_them(tmp_path: Path) -> None:
    world = loaded(tmp_path)
    world.script.fail("producer.send_offsets_to_transaction", TaskMigrated("!"))
    world.run_until(world.consumed)
    assert world.member.subscribed == [(), ()]
    assert len(world.producers) == 2


def test_a_lost_membership_closes_the_tasks_without_a_commit(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, commit_every_ms=1_000)
    world.load("1", "2")

    def rejoined() -> bool:
        if world.consumer.taken and len(world.producers) == 1:
            world.member.signalled = MembershipSignal.LOST
        return len(world.member.subscribed) == 2

    world.run_until(rejoined)
    lost = world.script.calls.index("producer.discard")
    assert "producer.send_offsets_to_transaction" not in world.script.calls[:lost]
    assert world.member.subscribed == [(), ()]
    assert world.member.former == [(), ("0_0",)]


def test_a_thread_that_recovers_without_tasks_runs_again(tmp_path: Path) -> None:
    world = loaded(tmp_path)
    world.script.fail("consumer.remove_partitions", OutcomeUnknown("?"))
    began_s: list[float] = []

    def lost_its_task() -> bool:
        if world.consumed() and not world.script.calls.count("consumer.remove_partitions"):
            world.member.signalled = MembershipSignal.REBALANCE
            world.member.assign(AssignmentInfo((), ()))
        if world.loop.counters.recoveries and not began_s:
            began_s.append(world.clock.elapsed_s)
        return bool(began_s) and world.clock.elapsed_s > began_s[0] + 1

    world.run_until(lost_its_task)
    assert world.script.list_unmade_failures() == []
    assert world.loop.tasks == {}
    assert world.states[-2:] == ["REBALANCING", "RUNNING"]


def test_a_member_that_has_its_tasks_says_them_once(tmp_path: Path) -> None:
    world = loaded(tmp_path)

    def rejoined() -> bool:
        if world.consumed() and len(world.member.subscribed) == 1:
            world.member.signalled = MembershipSignal.REBALANCE
        return len(world.member.subscribed) == 2

    world.run_until(rejoined)
    assert world.member.subscribed == [(), ("0_0",)]
    assert world.member.former == [(), ()]


def test_a_new_producer_that_can_not_begin_is_tried_again(tmp_path: Path) -> None:
    world = loaded(tmp_path)
    for attempt in (1, 2, 3):
        world.script.fail("producer.init", OutcomeUnknown("no broker"), at=attempt)
    world.run_until(world.consumed)
    assert_exact(world)


def test_produce_that_refuses_since_the_producer_was_fenced_is_recovered_from(
    tmp_path: Path,
) -> None:
    world = loaded(tmp_path)
    fatal = KafkaException(KafkaError(KafkaError._FATAL))
    world.script.fail("produce out", fatal)
    world.script.fail(f"produce {CHANGELOG}", fatal, at=2)
    world.run_until(world.consumed)
    assert_exact(world)
    assert world.loop.counters.recoveries == 2


def test_a_fenced_produce_of_a_record_on_its_way_is_recovered_from(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path)
    world.load("a", "b", "c")
    world.script.fail("produce out", KafkaException(KafkaError(KafkaError._FATAL)), at=2)
    world.run_until(world.consumed)
    assert [value for _, value in world.kafka.committed("out")] == [b"A", b"B", b"C"]


def raises_of_its_own_client(value: str) -> str:
    raise KafkaException(KafkaError(KafkaError._FENCED, "a producer of the user's"))


def test_a_users_own_kafka_error_is_not_taken_for_one_of_ours(tmp_path: Path) -> None:
    world = World(build_mapping_topology(raises_of_its_own_client), tmp_path)
    world.load("a")
    with pytest.raises(StreamsError, match=r"in\[0\]@0.*a producer of the user's"):
        world.run_until(world.consumed)
    assert world.loop.counters.recoveries == 0


def test_a_record_that_is_too_large_ends_the_thread_and_is_named(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path)
    world.load("a", "b")
    too_large = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
    world.script.fail("produce out", too_large, at=2)
    with pytest.raises(StreamsError, match=r"in\[0\]@1.*MSG_SIZE_TOO_LARGE"):
        world.run_until(world.consumed)


def test_errors_without_a_commit_for_task_timeout_ms_end_the_thread(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, task_timeout_ms=1_000)
    world.load("1")
    for attempt in range(1, 50):
        world.script.fail("producer.commit_transaction", OutcomeUnknown("no answer"), at=attempt)
    with pytest.raises(StreamsError, match=r"no commit for 1000 ms \(task_timeout_ms\): no answer"):
        world.run_until(world.consumed)
    assert 3 < world.loop.counters.recoveries < 10


def test_a_commit_in_between_ends_the_trouble(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, task_timeout_ms=1_000)
    world.load(*map(str, range(100)))
    for attempt in range(1, 20, 2):
        world.script.fail("producer.commit_transaction", OutcomeUnknown("no answer"), at=attempt)
    world.run_until(world.consumed)
    assert world.loop.counters.recoveries == 10


def test_a_quiet_time_between_two_errors_ends_the_trouble_of_the_first(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, commit_every_ms=100, task_timeout_ms=10_000)
    world.script.fail("producer.poll_delivery_reports", OutcomeUnknown("a broker went away"))
    world.script.fail("producer.poll_delivery_reports", OutcomeUnknown("and again"), at=1_000)
    began_s = world.clock.elapsed_s
    world.run_until(lambda: world.loop.counters.recoveries == 2)
    assert world.clock.elapsed_s - began_s > 10


def failing(value: object) -> Any:
    raise ZeroDivisionError(f"with {value}")


LINE = failing.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("topology", "where"),
    [
        (build_mapping_topology(failing), r"in\[0\]@0"),
        (build_counting_topology(then=failing), r"in\[0\]@0"),
    ],
    ids=["record", "commit"],
)
def test_an_error_of_a_users_function_names_the_record_and_the_line(
    tmp_path: Path, topology: Topology, where: str
) -> None:
    world = World(topology, tmp_path)
    world.load("1")
    with pytest.raises(
        StreamsError, match=rf"can't process {where}: ZeroDivisionError.*failing.*:{LINE}"
    ):
        world.run_until(world.consumed)
    assert world.kafka.committed("out") == []


def test_what_a_disk_can_not_do_begins_with_its_store_and_not_with_what_was_processed(
    tmp_path: Path,
) -> None:
    full = StateError("store 'c' in /state can't be written: No space left on device")
    message = str(to_recovery_error(full, COMMIT_ORIGIN))
    assert message == f"{full} (while processing the results of a commit)"
    refused = StoreSerdeError("store 'c' can't take value 5")
    assert str(to_recovery_error(refused, "record in[0]@7")).startswith(
        "record in[0]@7 can't be processed: "
    )


def test_a_value_that_can_not_be_read_ends_the_thread_with_its_own_message(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path)
    world.kafka.append_record(Partition("in", 0), b"k", b"\xff", 0)
    with pytest.raises(SerdeError, match=r"can't read in\[0\]@0"):
        world.run_until(world.consumed)


def test_a_thread_that_failed_leaves_its_directory_to_the_next(tmp_path: Path) -> None:
    world = World(build_mapping_topology(failing), tmp_path)
    world.load("1")
    with pytest.raises(StreamsError):
        world.run_until(world.consumed)
    world.directory.lock_task("0_0").release()
    ends = ("producer.try_abort_and_close", "member.leave_group", "consumer.close", "restore.close")
    assert world.script.filter_calls(*ends) == list(ends)


def test_the_first_moment_of_1970_survives_a_restore(tmp_path: Path) -> None:
    """Test that a record of time 0 does not get the present time in a restored store.

    librdkafka takes 0 for none and writes the present; all that is kept by time would then be old.
    """
    world = World(build_counting_topology(), tmp_path / "here")
    world.load("x")
    world.run_until(world.consumed)
    (written,) = world.kafka.logs[Partition("out", 0)].read_committed(0)
    assert written.timestamp()[1] == 1, "the nearest that there is"
    restored = World(build_counting_topology(), tmp_path / "there", kafka=world.kafka)
    found: list[Any] = []

    def is_running() -> bool:
        for task in restored.loop.tasks.values():
            if task.state is TaskState.RUNNING:
                found.append(task.steps.context.get_store("c").entry("k"))
        return bool(found)

    restored.run_until(is_running)
    assert found == [(1, 0)]


class Careless(Processor[str, str, str, str]):
    """Swallows every exception that forwarding raises."""

    def process(self, record: Record[str, str]) -> None:
        with suppress(Exception):
            self.context.forward(record)


@pytest.mark.parametrize(
    "lost", [OutcomeUnknown("the queue stayed full"), TaskMigrated("fenced")], ids=type
)
def test_a_record_that_could_not_be_written_is_not_lost_where_user_code_catches_the_error(
    tmp_path: Path, lost: Exception
) -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.process(Careless, key=serdes.string, value=serdes.string).to("out")
    world = World(app.topology(), tmp_path)
    world.load("a", "b", "c")
    world.script.fail("produce out", BufferError(), at=2)
    world.script.fail("producer.wait_for_queue_room", lost)
    world.run_until(world.consumed)
    assert [value for _, value in world.kafka.committed("out")] == [b"a", b"b", b"c"]
    assert world.script.list_unmade_failures() == []
