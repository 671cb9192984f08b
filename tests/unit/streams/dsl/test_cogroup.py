"""Test that cogroup folds several groups into one table, with windows and without."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, Windowed, serdes, windows
from streams.errors import TopologyError
from streams.windows import SessionWindows

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def noted(mark: str) -> Any:
    return lambda key, value, so_far: f"{so_far}{mark}{value}"


def cogrouped(app: App, *, rekeyed: bool = False) -> Any:
    orders, payments = app.stream("orders", **TEXT), app.stream("payments", **TEXT)
    if rekeyed:
        orders = orders.select_key(lambda key, value: value, key=serdes.string)
        payments = payments.select_key(lambda key, value: value, key=serdes.string)
    return orders.group_by_key().cogroup(noted("+")).cogroup(payments.group_by_key(), noted("-"))


def piped(driver: TopologyTestDriver, *records: tuple[str, str, int]) -> list[Any]:
    for topic, value, time_ms in records:
        driver.topic(topic).pipe("k", value, timestamp_ms=time_ms)
    return driver.topic("out").read_pairs()


def test_the_records_of_each_group_go_through_its_own_function() -> None:
    app = App("a")
    store = Store.in_memory("s", caching=False)
    cogrouped(app).aggregate(str, value=serdes.string, store=store).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        found = piped(driver, ("orders", "a", 1), ("payments", "b", 2), ("orders", "c", 3))
    assert found == [("k", "+a"), ("k", "+a-b"), ("k", "+a-b+c")]


def test_with_caching_a_key_that_several_groups_have_changed_goes_on_once() -> None:
    app = App("a")
    cogrouped(app).aggregate(str, value=serdes.string).to_stream().to("out")
    with TopologyTestDriver(app, commit="manual") as driver:
        piped(driver, ("orders", "a", 1), ("payments", "b", 2))
        driver.commit()
        assert driver.topic("out").read_pairs() == [("k", "+a-b")]


def test_old_values_reach_the_steps_after() -> None:
    app = App("a")
    table = cogrouped(app).aggregate(str, value=serdes.string)
    groups = table.group_by(lambda k, v: (v, v), key=serdes.string, value=serdes.string)
    groups.count(store="counted").to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        piped(driver, ("orders", "a", 1), ("payments", "b", 2))
        assert driver.store("counted").get("+a") == 0
        assert driver.store("counted").get("+a-b") == 1


@pytest.mark.parametrize(
    ("cut", "wanted"),
    [
        (windows.tumbling(10), {(0, 10): "+a-b", (10, 20): "+c"}),
        (windows.sliding(5), {(0, 5): "+a-b", (2, 7): "-b", (7, 12): "+c"}),
    ],
)
def test_by_windows(cut: Any, wanted: dict[tuple[int, int], str]) -> None:
    app = App("a")
    kept = Store.in_memory("s", retention=100)
    table = cogrouped(app).windowed_by(cut).aggregate(str, value=serdes.string, store=kept)
    table.to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        piped(driver, ("orders", "a", 1), ("payments", "b", 3), ("orders", "c", 12))
        rows = dict(driver.store("s").all())
    assert {(each.start_ms, each.end_ms): rows[each] for each in rows} == wanted


def test_by_sessions() -> None:
    app = App("a")
    cut = cogrouped(app).windowed_by(windows.session(5))
    kept = Store.in_memory("s", retention=100)
    cut.aggregate(
        str, merger=lambda key, one, other: one + other, value=serdes.string, store=kept
    ).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        piped(driver, ("orders", "a", 1), ("payments", "b", 5), ("orders", "c", 12))
        assert list(driver.store("s").all()) == [
            (Windowed("k", 1, 5), "+a-b"),
            (Windowed("k", 12, 12), "+c"),
        ]


def test_groups_that_were_rekeyed_each_go_through_a_topic_of_as_many_partitions() -> None:
    app = App("a")
    cogrouped(app, rekeyed=True).aggregate(str, value=serdes.string, store="s")
    topology = app.topology()
    assert topology.repartition_topics == {"a-s-repartition", "a-s-1-repartition"}
    counts = topology.derive_partition_counts({"orders": 2, "payments": 5})
    assert counts["a-s-repartition"] == counts["a-s-1-repartition"] == 5


def test_the_inputs_of_all_groups_have_equal_partition_counts() -> None:
    app = App("a")
    cogrouped(app).aggregate(str, value=serdes.string)
    with pytest.raises(TopologyError, match=r"orders.*payments|payments.*orders"):
        app.topology().derive_partition_counts({"orders": 2, "payments": 5})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda group, app: group.cogroup(1), "needs a function"),
        (lambda group, app: group.cogroup(noted("")).cogroup("x", noted("")), "another group"),
        (lambda group, app: group.cogroup(noted("")).cogroup(group, noted("")), "twice"),
        (
            lambda group, app: group.cogroup(noted("")).cogroup(
                App("b").stream("in", **TEXT).group_by_key(), noted("")
            ),
            "two applications",
        ),
        (lambda group, app: group.cogroup(noted("")).aggregate(str), "serde of its aggregate"),
        (lambda group, app: group.cogroup(noted("")).windowed_by(5), "take windows.tumbling"),
        (
            lambda group, app: (
                group.cogroup(noted(""))
                .windowed_by(windows.session(5))
                .aggregate(str, value=serdes.string)
            ),
            "give merger=",
        ),
    ],
)
def test_what_can_not_be_is_refused_when_it_is_described(wrong: Any, message: str) -> None:
    app = App("a")
    with pytest.raises(TopologyError, match=message):
        wrong(app.stream("in", **TEXT).group_by_key(), app)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "cut",
    [
        windows.tumbling(10, grace=3),
        windows.hopping(10, 4, grace=3),
        windows.sliding(5, grace=3),
        windows.session(4, grace=3),
    ],
    ids=["tumbling", "hopping", "sliding", "session"],
)
def test_windows_of_all_groups_close_once_and_together(cut: Any, seed: int) -> None:
    """Test against one group of the same records, merged, whose windows close once."""
    rng, time_ms = Random(seed), 0
    records = []
    for number in range(60):
        time_ms += rng.choice((0, 1, 2, 9))
        topic, late_ms = rng.choice(("orders", "payments")), rng.choice((0, 0, 1, 6))
        records.append((topic, str(number), max(time_ms - late_ms, 0)))
    both, merged = App("both"), App("merged")
    arguments: Any = {"value": serdes.string, "emit": "on_close"}
    is_session = isinstance(cut, SessionWindows)
    if is_session:
        arguments["merger"] = lambda key, one, other: f"{one}{other}"
    windowed = cogrouped(both).windowed_by(cut)
    windowed.aggregate(str, **arguments, name="w").to_stream().to("out")
    orders = merged.stream("orders", **TEXT).map_values(lambda value: f"+{value}")
    payments = merged.stream("payments", **TEXT).map_values(lambda value: f"-{value}")
    whole = orders.merge(payments).group_by_key().windowed_by(cut)
    whole.aggregate(str, lambda k, v, a: f"{a}{v}", **arguments).to_stream().to("out")
    found = []
    for app in (both, merged):
        with TopologyTestDriver(app, stores="memory") as driver:
            half = len(records) // 2
            rows = piped(driver, *records[:half])
            driver.crash()
            driver.restart()
            rows += piped(driver, *records[half:])
            found.append([(str(key), value) for key, value in rows])
    assert found[0] == found[1]
    assert len(found[0]) > 5
    assert len({key for key, _ in found[0]}) == len(found[0])
