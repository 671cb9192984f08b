"""Test what is said of topics that may appear and match a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streams import App, serdes, topics
from streams.commands.plan_inputs import review_inputs
from streams.doctor.findings import Verdict
from streams.doctor.pattern_checks import check_patterns
from streams.topology.build import Topology
from streams.topology.pattern_reviews import PatternReview, review_patterns

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
TWO = {"orders-eu": 3, "orders-us": 3}


def read_orders(app: App, **options: Any) -> Any:
    return app.stream(topics.matching("orders-[a-z]+"), **TEXT, **options)


def repartitioned() -> Topology:
    app = App("a")
    read_orders(app, co_partitioned=False).group_by(
        lambda k, v: v, key=serdes.string, name="by"
    ).count(store="c").to_stream().to("out")
    return app.topology()


def counted(**options: Any) -> Topology:
    app = App("a")
    read_orders(app, **options).group_by_key().count(store="c")
    return app.topology()


def copied() -> Topology:
    app = App("a")
    read_orders(app).to("out")
    return app.topology()


def review(topology: Topology, counts: Mapping[str, int]) -> PatternReview:
    (only,) = review_patterns(topology, counts)
    return only


def test_a_repartition_topic_that_exists_keeps_its_partitions() -> None:
    found = review(repartitioned(), {**TWO, "a-by-repartition": 3, "a-c-changelog": 3})
    assert found.describe_effects() == (
        "topics.matching('orders-[a-z]+') matches 2 topics (orders-eu has 3 partitions, "
        "orders-us has 3 partitions); a topic that appears may have any number of partitions; "
        "a-by-repartition keeps 3 whatever appears"
    )


def test_a_repartition_topic_that_does_not_exist_gets_as_many_as_the_widest_topic() -> None:
    found = review(repartitioned(), {"orders-eu": 3, "orders-us": 5})
    assert (
        "a-by-repartition will be created with 5 now, or more if a wider"
        in found.describe_effects()
    )
    assert review(repartitioned(), {}).describe_effects() == (
        "topics.matching('orders-[a-z]+') matches 0 topics; a topic that appears may have any "
        "number of partitions; a-by-repartition will be created with the most of any topic that "
        "matches then"
    )


def test_keys_that_meet_need_the_number_that_there_is() -> None:
    text = review(counted(), TWO).describe_effects()
    assert "with other than 3 partitions ends the application, as keys meet" in text


@pytest.mark.parametrize(("changelog", "most"), [({"a-c-changelog": 4}, 4), ({}, 3)])
def test_a_changelog_bounds_the_partitions_of_a_topic(
    changelog: Mapping[str, int], most: int
) -> None:
    found = review(counted(co_partitioned=False), {**TWO, **changelog})
    assert (
        f"a topic that appears with more than {most} partitions ends the application, as changelog "
        "a-c-changelog has no more"
    ) in found.describe_effects()


def test_without_state_any_number_will_do() -> None:
    text = review(copied(), TWO).describe_effects()
    assert text.endswith("; a topic that appears may have any number of partitions")


def test_one_partition_is_named_in_the_singular() -> None:
    text = review(copied(), {"orders-eu": 1}).describe_effects()
    assert "matches 1 topic (orders-eu has 1 partition);" in text


def test_nothing_is_said_where_the_topics_that_match_are_refused() -> None:
    assert list(review_patterns(counted(), {"orders-eu": 3, "orders-us": 4})) == []


def test_a_plan_says_it_where_brokers_were_asked() -> None:
    counts = {**TWO, "out": 1}
    assert review_inputs(copied(), counts).list_lines() == []
    (line,) = review_inputs(copied(), counts, [], "kafka:9092").list_lines()
    assert line.startswith("topics.matching('orders-[a-z]+') matches 2 topics (")


def test_the_doctor_warns_of_a_pattern_that_matches_nothing() -> None:
    (fine,) = check_patterns(copied(), TWO)
    assert (fine.verdict, "matches 2 topics" in fine.what) == (Verdict.FINE, True)
    (warned,) = check_patterns(copied(), {"order-eu": 3})
    assert warned.verdict is Verdict.WARNING
    assert "matches no topic" in warned.what
