"""Test that the topics of joined streams are co-partitioned (see test_partitions.py)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from streams import App, TopologyError, TopologyTestDriver, serdes
from streams.dsl.stream import Stream

BOTH: Any = {"key": serdes.string, "value": serdes.string}


def rekeyed(app: App, topic: str) -> Stream[str, str]:
    return app.stream(topic, **BOTH).select_key(
        lambda key, value: value, key=serdes.string, name=f"by-{topic}"
    )


def joined(left: Stream[str, str], right: Stream[str, str], name: str) -> Stream[str, str]:
    return left.join(right, lambda a, b: a + b, within=10, value=serdes.string, name=name)


def counts(app: App, **inputs: int) -> dict[str, int]:
    """Return the partition counts of repartition topics by the names of their joins and sides."""
    found = app.topology().derive_partition_counts(inputs)
    return {
        topic.removeprefix("a-").removesuffix("-repartition"): count
        for topic, count in found.items()
        if topic not in inputs
    }


def test_a_repartition_topic_has_as_many_as_the_external_topic_that_it_is_joined_with() -> None:
    app = App("a")
    joined(rekeyed(app, "x"), app.stream("y", **BOTH), "j")
    assert counts(app, x=8, y=3) == {"j-left": 3}
    assert counts(app, x=2, y=3) == {"j-left": 3}


def test_repartition_topics_alone_have_the_most_of_what_they_are_made_of() -> None:
    app = App("a")
    joined(rekeyed(app, "x"), rekeyed(app, "y"), "j")
    assert counts(app, x=8, y=3) == {"j-left": 8, "j-right": 8}


def test_what_was_declared_wins_and_must_agree() -> None:
    app = App("a")
    joined(app.stream("x", **BOTH).repartition(partitions=5, name="mine"), rekeyed(app, "y"), "j")
    assert counts(app, x=8, y=3) == {"mine": 5, "j-right": 5}

    app = App("a")
    joined(app.stream("x", **BOTH).repartition(partitions=5, name="mine"), app.stream("y", **BOTH),
           "j")  # fmt: skip
    assert counts(app, x=8, y=5) == {"mine": 5}
    with pytest.raises(TopologyError, match="'a-mine-repartition' has 5, 'y' has 3"):
        counts(app, x=8, y=3)

    app = App("a")
    one = app.stream("x", **BOTH).repartition(partitions=5, name="one")
    joined(one, app.stream("y", **BOTH).repartition(partitions=6, name="other"), "j")
    with pytest.raises(TopologyError, match="'a-one-repartition' has 5, 'a-other-repartition' has"):
        counts(app, x=8, y=3)


def test_joins_with_a_stream_in_common_are_one_group() -> None:
    app = App("a")
    middle = rekeyed(app, "m")
    joined(rekeyed(app, "x"), middle, "first")
    joined(middle, app.stream("y", **BOTH), "second")
    # With names, each join has its own repartition topic of the middle; without, they share one.
    assert counts(app, x=9, m=4, y=2) == {
        "first-left": 9,
        "first-right": 9,
        "second-left": 2,
    }
    app = App("a")
    left = middle = rekeyed(app, "m")
    left.join(rekeyed(app, "x"), lambda a, b: a, within=1)
    middle.join(app.stream("y", **BOTH), lambda a, b: a, within=1)
    assert counts(app, x=9, m=4, y=2) == {"by-m": 2, "by-x": 2}


def test_what_is_joined_after_a_join_fits_all_that_came_together() -> None:
    app = App("a")
    first = joined(app.stream("x", **BOTH), app.stream("y", **BOTH), "first")
    first.join(app.stream("z", **BOTH), lambda a, b: a, within=1, value=serdes.string)
    with pytest.raises(TopologyError, match="'x' has 2, 'y' has 2, 'z' has 3"):
        counts(app, x=2, y=2, z=3)


def test_a_join_works_on_every_partition_through_repartition_topics() -> None:
    app = App("a")
    joined(rekeyed(app, "x"), app.stream("y", **BOTH), "j").to("out", value=serdes.string)
    driver = TopologyTestDriver(app, partitions={"x": 2, "y": 3, "out": 1})
    for number in range(12):
        driver.topic("x").pipe(str(number), f"k{number}", timestamp_ms=number + 1)
        driver.topic("y").pipe(f"k{number}", str(number), timestamp_ms=number + 1)
    expected = {f"k{number}": f"k{number}{number}" for number in range(12)}
    assert driver.topic("out").read_table() == expected


@pytest.mark.parametrize("seed", range(2))
def test_whatever_crashes_each_pair_is_made_once(seed: int) -> None:
    rnd = random.Random(seed)
    app = App("a")
    left, right = rekeyed(app, "x"), app.stream("y", **BOTH)
    within: Any = {"within": 1_000, "value": serdes.string, "emit_interval": 0}
    left.left_join(right, lambda one, other: f"{one}+{other}", **within).to("out")
    values: dict[tuple[str, str], list[str]] = {}
    with TopologyTestDriver(app, partitions={"x": 2, "y": 2}, commit="manual") as driver:
        for number in range(1, 60):
            topic, key = rnd.choice("xy"), rnd.choice("abcd")
            values.setdefault((topic, key), []).append(key if topic == "x" else str(number))
            # A stream changes its key, so the topic gets it as its value.
            pair = (str(number), key) if topic == "x" else (key, str(number))
            driver.topic(topic).pipe(*pair, timestamp_ms=number)
            fate = rnd.random()
            if fate < 0.2:
                driver.commit()
            elif fate < 0.26:
                driver.crash()
                driver.restart()
        driver.commit()
        found = sorted(driver.topic("out").read_pairs())
    assert found == sorted(
        (key, f"{one}+{other}")
        for key in "abcd"
        for one in values.get(("x", key), [])
        for other in values.get(("y", key), [])
    ), f"{seed=}"
