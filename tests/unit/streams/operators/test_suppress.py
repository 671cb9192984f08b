"""Test that suppress forwards only a key's last update, as Kafka Streams 4.3.0 does.

The expected results of whole runs are those of its own TopologyTestDriver.
"""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from streams import (
    App,
    Store,
    StreamsError,
    TopologyError,
    TopologyTestDriver,
    Windowed,
    serdes,
    until_time_limit,
    until_window_closes,
    windows,
)
from streams.runtime.threads.commit import CommitStep

BOTH: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
Row = tuple[Any, Any, int]


def limited(until: Any, store: str | Store | None = None) -> App:
    app = App("app")
    app.table("in", **BOTH, store=store).suppress(until, name="sup").to_stream().to("out")
    return app


def rows(driver: TopologyTestDriver, topic: str = "out") -> list[Row]:
    return [(r.key, r.value, r.timestamp_ms) for r in driver.topic(topic).read_all()]


def run(driver: TopologyTestDriver, records: list[Row]) -> list[list[Row]]:
    """Pipe the records and return the results of each."""
    topic, found = driver.topic("in"), []
    for key, value, timestamp_ms in records:
        topic.pipe(key, value, timestamp_ms, [("h", str(timestamp_ms).encode())])
        found.append(rows(driver))
    return found


def flat(found: list[list[Row]]) -> list[Row]:
    return [row for step in found for row in step]


INPUT: list[Row] = [
    ("a", "1", 0), ("a", "2", 5), ("b", "1", 6), ("a", None, 7), ("c", "1", 9), ("d", "1", 9),
    ("a", "3", 10), ("b", None, 20), ("e", "1", 3), ("f", "1", 31),
]  # fmt: skip
EMITTED: list[list[Row]] = [
    [], [], [], [], [], [("a", None, 7)],
    [("b", "1", 6)], [("c", "1", 9), ("d", "1", 9), ("a", "3", 10)], [("e", "1", 3)],
    [("b", None, 20)],
]  # fmt: skip


def test_what_has_waited_long_enough_goes_on_and_so_does_the_oldest_of_a_full_buffer() -> None:
    with TopologyTestDriver(limited(until_time_limit(10, max_records=3))) as driver:
        assert run(driver, INPUT) == EMITTED


@pytest.mark.parametrize("store", [Store.in_memory("s", caching=False), Store.persistent("s")])
def test_at_the_commit_with_caching_too(store: Store) -> None:
    with TopologyTestDriver(limited(until_time_limit(10, max_records=3), store)) as driver:
        assert run(driver, INPUT) == EMITTED


def test_what_goes_on_has_the_headers_and_the_time_of_its_own_record() -> None:
    with TopologyTestDriver(limited(until_time_limit(10))) as driver:
        driver.topic("in").pipe("a", "1", 3, [("h", b"first")])
        driver.topic("in").pipe("b", "1", 20, [("h", b"second")])
        (record,) = driver.topic("out").read_all()
        assert (record.timestamp_ms, record.headers) == (3, (("h", b"first"),))


def test_the_changelog_is_that_of_kafka_streams() -> None:
    with TopologyTestDriver(limited(until_time_limit(10, max_records=3))) as driver:
        for timestamp_ms, value in ((0, "1"), (5, "2")):
            headers = [("h", f"h{timestamp_ms}".encode())]
            driver.topic("in").pipe("a", value, timestamp_ms, headers)
        changelog = driver.topic("app-sup-store-changelog").read_all()
    assert [(each.key, each.value.hex()) for each in changelog] == [
        (b"a", ("0000000000000000000000000000000000000002696e00000000000000010000000168000000026830"
               "ffffffffffffffff00000001310000000000000000")),
        (b"a", ("0000000000000005000000000000000100000002696e00000000000000010000000168000000026835"
               "ffffffff000000013100000001320000000000000000")),
    ]  # fmt: skip
    assert [each.headers for each in changelog] == [(("v", b"\x03"),)] * 2


@pytest.mark.parametrize("limits", [{"max_records": 2}, {"max_bytes": 2 * 8 + 2 * (20 + 2 + 4)}])
def test_a_full_buffer_that_may_not_emit_early_ends_the_application(limits: Any) -> None:
    until = until_time_limit(100, when_full="shut_down", **limits)
    with TopologyTestDriver(limited(until)) as driver:
        run(
            driver, [("a", "1", 1), ("b", "1", 2), ("a", "2", 3)] if "max_records" in limits else []
        )
        if "max_bytes" in limits:
            driver.topic("in").pipe("a", "1", 1)
            driver.topic("in").pipe("b", "1", 2)
        with pytest.raises(StreamsError, match=r"'sup' is full: 3 records .* more room"):
            driver.topic("in").pipe("c", "1", 4)


def test_a_limit_in_bytes_counts_keys_values_and_where_records_came_from() -> None:
    # A change takes 8 bytes of time, the key, 20 bytes and the topic of its origin, its values.
    of_one = 8 + 1 + 20 + len("in") + 1
    with TopologyTestDriver(limited(until_time_limit(100, max_bytes=2 * of_one))) as driver:
        topic = driver.topic("in")
        topic.pipe("a", "1", 1)
        topic.pipe("b", "1", 2)
        assert rows(driver) == []
        topic.pipe("b", "12", 3)  # the old value counts too
        assert rows(driver) == [("a", "1", 1)]


def test_those_after_take_back_what_they_were_given_and_nothing_else() -> None:
    app = App("app")
    table = app.table("in", key=serdes.string, value=serdes.int64)
    table.suppress(until_time_limit(10)).group_by(
        lambda key, value: ("all", value), key=serdes.string, value=serdes.int64
    ).aggregate(
        lambda: 0, lambda key, value, total: total + value,
        lambda key, value, total: total - value, value=serdes.int64,
    ).to_stream().to("out")  # fmt: skip
    with TopologyTestDriver(app) as driver:
        for key, value, timestamp_ms in (
            ("a", 1, 1), ("a", 2, 5), ("b", 10, 20), ("a", 3, 22), ("a", 4, 23), ("c", 0, 60),
        ):  # fmt: skip
            driver.topic("in").pipe(key, value, timestamp_ms)
        # The sum gets 2, then 4 of a, 10 of b. Kafka Streams gives 2, 12, 13: it subtracts 3 of a.
        assert driver.topic("out").read_values()[-1] == 14


def test_of_a_window_only_the_final_result_goes_on_when_its_grace_is_over() -> None:
    app = App("app")
    grouped = app.stream("in", **BOTH).group_by_key()
    windowed = grouped.windowed_by(windows.tumbling(10, grace=5))
    results = windowed.reduce(lambda one, other: None if other == "-" else one + other)
    results.suppress(until_window_closes()).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        found = run(
            driver,
            [("a", "1", 1), ("b", "1", 12), ("a", "2", 9), ("a", "3", 14), ("b", "2", 15),
             ("a", "4", 3), ("a", "-", 16), ("c", "5", 40)],
        )  # fmt: skip
    first, second = Windowed("a", 0, 10), Windowed("b", 10, 20)
    # A window whose result was deleted emits nothing, as no consumer has seen a result of it.
    assert found == [[], [], [], [], [(first, "12", 9)], [], [], [(second, "12", 15)]]


def test_sessions_are_final_when_gap_and_grace_are_over() -> None:
    app = App("app")
    grouped = app.stream("in", **BOTH).group_by_key()
    sessions = grouped.windowed_by(windows.session(10, grace=5)).reduce(lambda a, b: a + b)
    sessions.suppress(until_window_closes()).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        found = run(
            driver,
            [("a", "1", 1), ("a", "2", 9), ("b", "3", 22), ("a", "4", 24), ("c", "5", 37),
             ("c", "6", 39)],
        )  # fmt: skip
    first, second, third = Windowed("a", 1, 9), Windowed("b", 22, 22), Windowed("a", 24, 24)
    # The first has closed when time is 9 + 10 + 5.
    assert found == [
        *([], [], []),
        *([(first, "12", 9)], [(second, "3", 22)], [(third, "4", 24)]),
    ]


def test_where_no_updates_come_the_wall_clock_closes_windows_if_it_was_asked_to() -> None:
    app = App("app")
    grouped = app.stream("in", **BOTH).group_by_key()
    table = grouped.windowed_by(windows.tumbling(100, grace=50)).reduce(lambda a, b: a + b)
    table.suppress(until_window_closes(idle_close=40)).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("a", "1", 30, [("h", b"1")])
        driver.advance_wall_clock(ms=100)
        assert rows(driver) == []
        driver.crash()
        driver.restart()
        for _ in range(20):
            driver.advance_wall_clock(ms=10)
        (record,) = driver.topic("out").read_all()
        assert (record.key, record.value, record.timestamp_ms) == (Windowed("a", 0, 100), "1", 30)
        assert record.headers == (("h", b"1"),)
        driver.topic("in").pipe("a", "2", 40)  # The aggregation has not closed this window.
        assert rows(driver) == []
        driver.topic("in").pipe("a", "3", 230)
        assert driver.dropped == 1
        driver.topic("in").pipe("a", "4", 450)
        assert rows(driver) == [(Windowed("a", 200, 300), "3", 230)]


def test_who_looks_at_a_suppressed_table_sees_what_was_let_go() -> None:
    app = App("app")
    looked: list[Any] = []
    table = app.table("in", **BOTH).suppress(until_time_limit(10), name="sup")
    view = table._view
    names = view.require_readable_stores()

    def look(at: Any) -> Any:
        get = view.create_row_getter(at)
        return lambda key, value, timestamp_ms: looked.append(get(key))

    other = app.stream("other", **BOTH)
    app._builder.add_step("LOOK", other._node, look, name=None, stores=names)
    table.to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("a", "1", 1)
        driver.topic("other").pipe("a", "", 2)  # Update 1 is buffered; there was no value before.
        driver.topic("in").pipe("b", "1", 11)
        driver.topic("other").pipe("a", "", 12)  # This is the table's own value.
        driver.topic("in").pipe("a", "2", 13)
        driver.topic("other").pipe("a", "", 14)  # Update 2 is buffered: this is the value before.
    assert looked == [None, ("1", 1), ("1", -1)]


@pytest.mark.parametrize(
    "step", [CommitStep.PROCESSED, CommitStep.PRODUCED, CommitStep.COMMITTED, CommitStep.STORED]
)
@pytest.mark.parametrize("at", [3, 5, 7, 9])
def test_killed_anywhere_it_lets_each_update_go_once(step: CommitStep, at: int) -> None:
    app = limited(until_time_limit(10, max_records=3))
    with TopologyTestDriver(app, stores="memory") as driver:
        found = run(driver, INPUT[:at])
        driver.crash(at=step)
        driver.topic("in").pipe(*INPUT[at])
        driver.restart()
        found.append(rows(driver))
        found += run(driver, INPUT[at + 1 :])
        assert found == EMITTED


def random_records(seed: int) -> list[Row]:
    random, now_ms = Random(seed), 0
    records: list[Row] = []
    for number in range(40):
        now_ms += random.randrange(4)
        value = None if random.random() < 0.2 else str(number)
        records.append((random.choice("abcdef"), value, max(now_ms - random.randrange(6), 1)))
    return records


@pytest.mark.parametrize("limits", [{}, {"max_records": 2}, {"max_bytes": 90}])
@pytest.mark.parametrize("seed", range(3))
def test_with_random_crashes_each_partition_gives_what_it_gives_without(
    seed: int, limits: Any
) -> None:
    def run_with(crashes: list[CommitStep | None]) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = {0: [], 1: []}
        app = limited(until_time_limit(8, **limits), Store.in_memory("s"))
        counts = {"in": 2, "out": 2}
        with TopologyTestDriver(app, partitions=counts, stores="memory") as driver:
            for record, crash in zip(random_records(seed), crashes, strict=True):
                if crash is not None:
                    driver.crash(at=crash)
                driver.topic("in").pipe(*record)
                if crash is not None:
                    driver.restart()
            for each in driver.topic("out").read_all():
                found[each.partition].append((each.key, each.value, each.timestamp_ms))
        return found

    random = Random(seed)
    steps = [
        CommitStep.PROCESSED,
        CommitStep.PRODUCED,
        CommitStep.OFFSETS_SENT,
        CommitStep.COMMITTED,
        CommitStep.STORED,
    ]
    crashes = [random.choice(steps) if random.random() < 0.3 else None for _ in range(40)]
    calm = run_with([None] * 40)
    assert sum(map(len, calm.values())) > 10
    assert run_with(crashes) == calm, f"{seed=}"


def test_on_disk_it_goes_on_without_its_changelog() -> None:
    with TopologyTestDriver(limited(until_time_limit(10, max_records=3))) as driver:
        found = run(driver, INPUT[:8])
        driver.advance_wall_clock(1_000)  # until then what a commit changed may wait in memory
        driver.crash()
        driver.restart()
        assert driver.metrics()["restored_records"] == 0
        assert found + run(driver, INPUT[8:]) == EMITTED


def test_without_a_changelog_there_is_none() -> None:
    app = limited(until_time_limit(10, logged=False))
    with TopologyTestDriver(app) as driver:
        assert "app-sup-store-changelog" not in driver.topics
        assert flat(run(driver, INPUT[:8]))


def test_a_key_that_is_no_window_is_told_where_it_comes() -> None:
    app = App("app")
    rows_of = app.stream("in", **BOTH).group_by_key().windowed_by(windows.tumbling(10)).count()
    unwindowed = rows_of.to_stream().select_key(lambda key, _: key.key, key=serdes.string)
    unwindowed.to_table().suppress(until_window_closes(), name="sup").to_stream().to("out")
    with TopologyTestDriver(app) as driver, pytest.raises(StreamsError, match=r"'sup'.*end_ms"):
        driver.topic("in").pipe("a", "1", 1)


def test_a_suppressed_table_is_described_with_its_buffer() -> None:
    described = limited(until_time_limit(10)).describe()
    assert "Processor: sup (stores: [sup-store])" in described


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda t: t.suppress(10), r"step 'KTABLE-SUPPRESS-.*' takes until_window_closes|suppress"),
        (lambda t: t.suppress(until_window_closes()), "is in no windows: aggregate with"),
        (lambda t: until_window_closes(when_full="emit_early"), 'can only "shut_down"'),
        (lambda t: until_time_limit(10, when_full=cast(Any, "later")), "neither"),
        (lambda t: until_window_closes(idle_close=0), "must be at least 1 ms"),
        (lambda t: until_time_limit(-1), "duration can't be negative"),
        (lambda t: until_time_limit(10, max_records=-1), "max_records=-1 is no number"),
        (lambda t: until_time_limit(10, max_bytes=cast(Any, "1")), "max_bytes='1' is no number"),
        (lambda t: until_window_closes(logged=cast(Any, "no")), "logged='no' is neither"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        wrong(App("app").table("in", **BOTH))


def test_a_versioned_table_is_refused() -> None:
    table = App("app").table("in", **BOTH, store=Store.versioned("v", history=10))
    with pytest.raises(TopologyError, match="the table is versioned"):
        table.suppress(until_time_limit(10))
