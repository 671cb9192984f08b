"""Test that an application that was killed during a commit has each record once after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from state.key_value import KeyValueStore
from state.store_checkpoint import StoreCheckpoint
from state.write_behind import WriteBehindDisk
from streams import App, Store, StreamsError, TopologyTestDriver, serdes
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.clients import StreamsProducer
from streams.runtime.tasks.task_stores import TaskStores
from streams.runtime.threads.commit import CommitStep
from streams.testing.clients import InMemoryProducer
from streams.testing.cluster import InMemoryCluster
from tests.unit.streams.testing.apps import build_counting_app, build_word_count_app

IN_A_COMMIT = [
    CommitStep.PROCESSED,
    CommitStep.PRODUCED,
    CommitStep.OFFSETS_SENT,
    CommitStep.COMMITTED,
    CommitStep.STORED,
]
STORES: dict[str, str | Store] = {"disk": "c", "memory": Store.in_memory("c")}


def check_once(step: CommitStep, store: str | Store) -> None:
    """Assert that outputs, store and changelog have each of four records once after a crash.

    The crash is at `step` of the second record's commit.
    """
    with TopologyTestDriver(build_counting_app(store)) as driver:
        topic, out = driver.topic("in"), driver.topic("out")
        topic.pipe("k", "x")
        driver.crash(at=step)
        topic.pipe("k", "x")
        assert not driver.is_running
        topic.pipe("k", "x")  # nobody processes it before the restart
        visible = [1, 2] if step in IN_A_COMMIT[3:] else [1]
        assert out.read_values() == visible
        driver.restart()
        topic.pipe("k", "x")
        assert [*visible, *out.read_values()] == [1, 2, 3, 4]
        assert driver.store("c").get("k") == 4
        assert driver.topic("counting-c-changelog").read_table() == {"k": 4}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
@pytest.mark.parametrize("step", IN_A_COMMIT, ids=lambda step: step.name)
def test_each_record_is_in_outputs_and_stores_once(step: CommitStep, store: str | Store) -> None:
    check_once(step, store)


def stores_are_written_before_kafka_agrees(patch: pytest.MonkeyPatch) -> None:
    send_changes_to_changelog = TaskStores.send_changes_to_changelog

    def and_write(stores: TaskStores, producer: StreamsProducer) -> None:
        send_changes_to_changelog(stores, producer)
        for logged in stores.logged.values():
            assert isinstance(logged.store, KeyValueStore)
            assert isinstance(logged.disk, WriteBehindDisk)
            assert logged.store._drained is not None
            logged.disk._disk.write_changes(
                logged.store._drained.changes,
                StoreCheckpoint(logged.changelog_position, logged.changelog_topic_id),
            )

    patch.setattr(TaskStores, "send_changes_to_changelog", and_write)


def offsets_stay_outside_the_transaction(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InMemoryProducer, "send_offsets_to_transaction", lambda *_: None)


def the_changelog_gets_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        LoggedStore, "send_changes_to_changelog", lambda logged, *_: logged.store.drain_writes()
    )


def what_was_aborted_is_read(patch: pytest.MonkeyPatch) -> None:
    end = InMemoryCluster.end_transaction
    patch.setattr(
        InMemoryCluster,
        "end_transaction",
        lambda cluster, each, committed: end(cluster, each, committed=True),
    )


@pytest.mark.parametrize(
    ("bug", "step", "store"),
    [
        (stores_are_written_before_kafka_agrees, CommitStep.PRODUCED, "disk"),
        (offsets_stay_outside_the_transaction, CommitStep.COMMITTED, "disk"),
        (the_changelog_gets_nothing, CommitStep.STORED, "memory"),
        (what_was_aborted_is_read, CommitStep.PRODUCED, "disk"),
    ],
)
def test_a_planted_bug_is_seen(
    bug: Callable[[pytest.MonkeyPatch], None],
    step: CommitStep,
    store: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bug(monkeypatch)
    with pytest.raises((AssertionError, StreamsError)):
        check_once(step, STORES[store])


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("step", IN_A_COMMIT, ids=lambda step: step.name)
def test_so_it_is_on_the_way_through_a_repartition_topic(step: CommitStep, times: int) -> None:
    with TopologyTestDriver(build_word_count_app(), partitions={"lines": 2}, seed=times) as driver:
        driver.crash(at=step, times=times)
        driver.topic("lines").pipe_many([("k", "a b"), ("l", "b c"), ("m", "c a")])
        assert not driver.is_running
        driver.restart()
        out = driver.topic("counts-by-word")
        assert sorted(out.read_pairs()) == [(w, n) for w in "abc" for n in (1, 2)]
        assert dict(driver.store("counts").all()) == dict.fromkeys("abc", 2)


def test_a_store_in_memory_comes_back_from_its_changelog() -> None:
    with TopologyTestDriver(build_counting_app(Store.in_memory("c"))) as driver:
        driver.topic("in").pipe_many([("k", "x"), ("l", "x")])
        driver.crash()
        driver.restart()
        assert driver.metrics()["restored_records"] == 2
        assert dict(driver.store("c").all()) == {"k": 1, "l": 1}


def test_a_store_on_disk_goes_on_from_there_and_catches_up() -> None:
    with TopologyTestDriver(build_counting_app()) as driver:
        driver.topic("in").pipe_many([("k", "x"), ("l", "x")])
        driver.advance_wall_clock(1_000)  # until then what a commit changed may wait in memory
        driver.crash(at=CommitStep.COMMITTED)
        driver.topic("in").pipe("k", "x")
        driver.restart()
        assert driver.metrics()["restored_records"] == 1
        assert dict(driver.store("c").all()) == {"k": 2, "l": 1}


def test_it_may_be_killed_while_it_restores() -> None:
    with TopologyTestDriver(build_counting_app(Store.in_memory("c"))) as driver:
        driver.topic("in").pipe("k", "x")
        driver.crash()
        driver.crash(at="RESTORING")
        driver.restart()
        assert not driver.is_running
        driver.restart()
        assert driver.store("c").get("k") == 1


def test_without_transactions_a_crash_doubles_what_it_had_produced() -> None:
    with TopologyTestDriver(build_counting_app(processing_guarantee="at_least_once")) as driver:
        driver.crash(at=CommitStep.PRODUCED)
        driver.topic("in").pipe("k", "x")
        driver.restart()
        assert driver.topic("out").read_values() == [1, 2]


def test_a_crash_that_never_came_is_told() -> None:
    with TopologyTestDriver(build_counting_app()) as driver:
        driver.crash(at="STORING")
        driver.topic("in").pipe("k", "x")
        with pytest.raises(StreamsError, match="a crash at STORING, and nothing has reached"):
            driver.restart()


def test_a_crash_that_has_come_does_not_come_again() -> None:
    with TopologyTestDriver(build_counting_app()) as driver:
        driver.crash(at="COMMITTED")
        driver.topic("in").pipe("k", "x")
        driver.restart()
        driver.topic("in").pipe("k", "x")
        driver.restart()
        assert driver.topic("out").read_values() == [1, 2]


def test_a_restart_without_a_crash_commits_first() -> None:
    with TopologyTestDriver(build_counting_app(), commit="manual") as driver:
        driver.topic("in").pipe("k", "x")
        driver.restart()
        assert driver.topic("out").read_values() == [1]


def test_a_step_that_there_is_not_is_refused() -> None:
    with TopologyTestDriver(build_counting_app()) as driver:
        with pytest.raises(ValueError, match="'COMMIT': the steps are PROCESSED, PRODUCED"):
            driver.crash(at="COMMIT")
        with pytest.raises(ValueError, match="at least 1"):
            driver.crash(at="COMMITTED", times=0)
        driver.crash()
        with pytest.raises(StreamsError, match="has crashed"):
            driver.crash()


KEPT = {
    "on disk": Store.persistent("s"),
    "on disk, without a changelog": Store.persistent("s", logged=False),
    "on disk, with a ttl": Store.persistent("s", ttl=1_000),
    "in memory": Store.in_memory("s"),
}


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("store", KEPT)
def test_the_count_of_keys_is_there_after_a_restart(store: str, *, crashes: bool) -> None:
    app = App("counting")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by_key().count(store=KEPT[store])
    with TopologyTestDriver(app, commit="manual") as driver:
        topic = driver.topic("in", key=serdes.string, value=serdes.string)
        view: Any = driver.store("s")
        for first, last in ((0, 100), (100, 110)):
            for number in range(first, last):
                topic.pipe(f"key {number}", "v", timestamp_ms=0)
            driver.commit()
            assert view.approximate_count() == last
            if crashes:
                driver.crash()
            driver.restart()
            assert view.approximate_count() == last == len(list(view.all()))
