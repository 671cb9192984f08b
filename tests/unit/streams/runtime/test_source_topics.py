"""Test that a table's own topic replaces its changelog: the store is as of the committed offset."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import pytest

from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from state.versioned import VersionedStore
from streams import App, Store, TopologyTestDriver, serdes
from streams.common.topic_partitions import Partition
from streams.errors import PositionRefused
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.changelogs.changelog import (
    ChangelogRange,
    RestoreStart,
    find_source_restore_start,
)
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.threads.commit import CommitStep
from tests.unit.streams.runtime.restored import CHANGELOG, Restoring, checkpoint, held

TEXT: Any = {"key": serdes.string, "value": serdes.string}
DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
ROWS = Partition("rows", 0)


def begin(
    position: int | None,
    *,
    start: int = 10,
    end: int = 20,
    topic_id: str = "id",
    age_ms: int = 5,
    accepts_loss: bool = False,
    first_offset: int = 0,
) -> RestoreStart:
    """Find the restore's start when `end` is committed, in a topic that begins at `start`.

    The topic keeps deletions for a day.
    """
    found = None if position is None else StoreCheckpoint(position, "id", NOW_MS - age_ms)
    source = ChangelogRange(ROWS, start, end, topic_id, DAY_MS, NOW_MS)
    return find_source_restore_start(
        "rows", found, source, accepts_loss=accepts_loss, first_offset=first_offset
    )


def test_a_store_goes_on_from_where_it_is_and_a_new_one_from_the_start() -> None:
    assert begin(15) == RestoreStart(15, NOW_MS - 5)
    assert begin(None, start=0) == RestoreStart(0, NOW_MS)
    assert begin(None, end=0) == RestoreStart(10, NOW_MS), "nothing was read of it"


@pytest.mark.parametrize(
    "given",
    [{"position": None}, {"position": 9}, {"position": 21}, {"position": 15, "age_ms": DAY_MS}],
)
def test_a_store_that_needs_rows_which_the_topic_has_lost_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PositionRefused, match=r"rows\[0\], which restores .* 0 to 9 were removed"):
        begin(**given)
    accepted = begin(**given, accepts_loss=True)
    assert accepted.position == 10
    assert accepted.loss


@pytest.mark.parametrize("end", [5, 10, 20])
def test_a_store_that_is_where_the_offset_is_misses_nothing_whatever_has_expired(end: int) -> None:
    assert begin(end, end=end, age_ms=9 * DAY_MS) == RestoreStart(end, NOW_MS - 9 * DAY_MS)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"position": 21, "start": 0}, "it is at 21 of rows[0], and the committed offset is 20"),
        ({"position": 9, "accepts_loss": True}, "it is at 9 and rows[0] begins at 10"),
        ({"position": 15, "topic_id": "other"}, "was made again, or is not what restored"),
        ({"position": 15, "age_ms": DAY_MS, "start": 0}, "keeps deletions for 86400 s"),
    ],
)
def test_a_store_that_may_have_missed_writes_is_rebuilt(given: dict[str, Any], why: str) -> None:
    found = begin(**given)
    assert found.position == given.get("start", 10)
    assert why in (found.rebuild_reason or "")


def from_source(world: Restoring, committed: int, **has: Any) -> LoggedStore:
    logged = world.store(**has)
    logged.is_source_topic, logged.committed_source_offset = True, committed
    return logged


@pytest.mark.parametrize("batch", [1, 2, 10_000])
def test_what_is_not_committed_yet_is_not_restored(batch: int) -> None:
    world = Restoring(batch=batch)
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("a", None), ("a", "3"), ("b", "4"))
    logged = from_source(world, committed=3)
    world.restore(logged)
    assert (held(logged), logged.changelog_position, checkpoint(logged)[0]) == ({"b": "2"}, 3, 3)


def test_what_a_first_start_has_skipped_is_no_row_and_may_be_lost() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"))
    logged = from_source(world, committed=4)
    logged.first_source_offset = 2
    world.restore(logged)
    assert (held(logged), logged.changelog_position) == ({"c": "3", "d": "4"}, 4)
    assert begin(None, start=10, first_offset=10) == RestoreStart(10, NOW_MS)
    assert begin(None, start=0, first_offset=12) == RestoreStart(12, NOW_MS), "nothing is before it"
    with pytest.raises(PositionRefused, match="its records 9 to 9 were removed"):
        begin(None, start=10, first_offset=9)


def test_beside_a_store_with_a_changelog_each_gets_to_its_own_end() -> None:
    world = Restoring()
    other = Partition("a-d-changelog", 0)
    world.kafka.load(CHANGELOG, *(("a", str(n)) for n in range(9)))
    world.kafka.load(other, *(("a", str(n)) for n in range(9)))
    source, logged = from_source(world, committed=4), world.store(changelog=other)
    world.restore(source, logged)
    assert (held(source), held(logged)) == ({"a": "3"}, {"a": "8"})


def test_without_a_committed_offset_nothing_is_restored_and_what_is_there_goes() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = from_source(world, committed=0, held={"a": "1"}, position=1)
    assert world.restore(logged) == 0
    assert held(logged) == {}


def test_records_without_a_key_are_passed_over_as_the_table_does() -> None:
    app = restored_table(Store.in_memory("rows"))
    with TopologyTestDriver(app, stores="memory") as driver:
        driver.topic("rows").pipe_many([("a", "1"), (None, "2"), ("b", "3")])
        driver.crash()
        driver.restart()
        assert dict(driver.store("rows").all()) == {"a": "1", "b": "3"}


def test_a_store_on_disk_is_where_its_table_is_and_a_restart_reads_nothing_again() -> None:
    with TopologyTestDriver(restored_table(Store.persistent("rows"))) as driver:
        driver.topic("rows").pipe_many([("a", "1"), ("b", "2")])
        driver.advance_wall_clock(1_000)  # until then what a commit changed may wait in memory
        driver.crash()
        driver.restart()
        assert driver.store("rows").get("b") == "2"
        assert driver.metrics()["restored_records"] == 0


def test_a_task_that_reads_no_partition_of_the_tables_topic_restores_nothing() -> None:
    app = App("a", topology_optimization="all")
    rows = app.table("rows", **TEXT, store="rows").to_stream()
    rows.merge(app.stream("more", **TEXT)).to("out")
    with TopologyTestDriver(app, partitions={"more": 2}, stores="memory") as driver:
        driver.topic("rows").pipe("a", "1")
        for key in "abcd":
            driver.topic("more").pipe(key, "2")
        driver.crash()
        driver.restart()
        assert driver.store("rows").get("a") == "1"
        assert len(driver.topic("out").read_all()) == 5


def restored_table(store: Store) -> App:
    app = App("a", topology_optimization="reuse.ktable.source.topics")
    rows = app.table("rows", **TEXT, store=store)
    counts = rows.group_by(lambda key, value: (value, key), **TEXT).count(store="counts")
    counts.to_stream().to("out")
    return app


FED = [("a", "x"), ("b", "x"), ("a", "y"), ("c", "y"), ("b", None), ("a", "x"), ("c", "x")]


STEPS = [step for step in CommitStep if step is not CommitStep.RESTORING]


@pytest.mark.parametrize(
    ("stores", "step"), [*(("memory", step) for step in STEPS), ("declared", CommitStep.COMMITTED)]
)
def test_after_a_crash_at_any_step_old_values_are_what_they_were(
    stores: Literal["memory", "declared"], step: CommitStep
) -> None:
    """Test that counts by value stay right, for which every old value is subtracted once."""
    rows: dict[str, str | None] = {}
    app = restored_table(Store.persistent("rows"))
    with TopologyTestDriver(app, partitions={"rows": 2}, seed=1, stores=stores) as driver:
        for number, (key, value) in enumerate(FED):
            if number == 3:
                driver.crash(at=step)
            driver.topic("rows").pipe(key, value)
            rows[key] = value
            if not driver.is_running:
                driver.topic("rows").pipe("d", "late")  # It stays in the topic during the restore.
                rows["d"] = "late"
                driver.restart()
        if driver.is_running:
            driver.crash()
            driver.restart()
        found = {value: driver.store("counts").get(value) or 0 for value in ("x", "y", "late")}
        expected = Counter(value for value in rows.values() if value is not None)
        assert found == {value: expected[value] for value in ("x", "y", "late")}
        assert {key: driver.store("rows").get(key) for key in rows} == rows
        assert "a-rows-changelog" not in driver.topics


@pytest.mark.parametrize("step", STEPS)
def test_at_least_once_the_store_has_what_was_committed(step: CommitStep) -> None:
    app = App("a", topology_optimization="all", processing_guarantee="at_least_once")
    app.table("rows", **TEXT, store="rows").to_stream().to("out")
    with TopologyTestDriver(app, stores="memory") as driver:
        driver.topic("rows").pipe_many([("a", "1"), ("b", "1")])
        driver.crash(at=step)
        driver.topic("rows").pipe("a", "2")
        if not driver.is_running:
            driver.restart()
        driver.topic("rows").pipe("b", None)
        assert [driver.store("rows").get(key) for key in "ab"] == ["2", None]


def test_without_the_optimisation_the_store_has_a_changelog_of_its_own() -> None:
    app = App("a")
    app.table("rows", **TEXT, store="rows")
    assert app.topology().restore_topic_of("rows") == "a-rows-changelog"
    (store,) = app.topology().subtopologies[0].stores
    assert store.source_topic is None


def test_a_table_of_a_stream_and_a_store_that_forgets_by_itself_keep_their_changelogs() -> None:
    app = App("a", topology_optimization="all")
    app.stream("lines", **TEXT).to_table(store="of-stream")
    app.table("rows", **TEXT, store=Store.persistent("forgets", ttl=1_000))
    app.table("more", **TEXT, store=Store.versioned("versions", history=1_000))
    topology = app.topology()
    assert [topology.restore_topic_of(name) for name in ("of-stream", "forgets", "versions")] == [
        "a-of-stream-changelog",
        "a-forgets-changelog",
        "more",
    ]


def test_a_version_that_was_dropped_as_too_old_is_dropped_in_a_restore_too() -> None:
    kept: dict[str, Any] = {"kind": StoreKind.VERSIONED, "history_ms": 10, "source_topic": "rates"}
    spec = StoreSpec(name="v", **TEXT, **kept)
    put, restored = (open_store(spec, MemoryDisk()) for _ in range(2))
    assert isinstance(put, VersionedStore)
    assert isinstance(restored, VersionedStore)
    records = [("a", "1", 5), ("b", "2", 30), ("c", "late", 9), ("a", "3", 25)]
    for key, value, timestamp_ms in records:
        put.put(key, value, timestamp_ms)
    entries = [(key.encode(), value.encode(), time_ms) for key, value, time_ms in records]
    restored.replay_changelog(entries, StoreCheckpoint(4, "id"))
    for key in "abc":
        assert restored.get(key) == put.get(key)
    assert restored.get("c") is None
