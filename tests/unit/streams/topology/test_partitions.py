"""Test that inputs, declarations and joins decide how many partitions repartition topics have."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from streams import App, StreamsError, TopologyError, serdes
from streams.membership.protocol import SubscriptionInfo
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.assigning.required_topics import check_topics
from streams.settings.config import StreamsConfig
from streams.topology.partitions import TopicFlow, derive_partition_counts
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def flow(reads: str, writes: str = "") -> TopicFlow:
    return TopicFlow(frozenset(reads.split()), frozenset(writes.split()))


def counts(
    flows: list[TopicFlow],
    inputs: Mapping[str, int],
    *joined: str,
    **declared: int | None,
) -> dict[str, int]:
    return derive_partition_counts(flows, declared, [group.split() for group in joined], inputs)


def test_a_repartition_topic_has_the_most_of_what_is_read_upstream() -> None:
    flows = [flow("a b", "r"), flow("r", "s"), flow("s")]
    assert counts(flows, {"a": 2, "b": 5}, r=None, s=None) == {"a": 2, "b": 5, "r": 5, "s": 5}


def test_a_declared_count_stays_and_goes_on_downstream() -> None:
    flows = [flow("a", "r"), flow("r", "s"), flow("s")]
    assert counts(flows, {"a": 2}, r=7, s=None) == {"a": 2, "r": 7, "s": 7}


def test_a_topic_that_two_write_has_the_most_of_both() -> None:
    flows = [flow("a", "r"), flow("b", "r"), flow("r")]
    assert counts(flows, {"a": 2, "b": 3}, r=None)["r"] == 3


def test_one_that_is_joined_with_an_input_has_as_many_as_the_input() -> None:
    flows = [flow("a", "r"), flow("r b")]
    assert counts(flows, {"a": 2, "b": 6}, "r b", r=None)["r"] == 6
    assert counts(flows, {"a": 6, "b": 2}, "r b", r=None)["r"] == 2


def test_those_that_are_joined_with_each_other_have_the_most_or_what_one_declares() -> None:
    flows = [flow("a", "r"), flow("b", "s"), flow("r s")]
    assert counts(flows, {"a": 2, "b": 6}, "r s", r=None, s=None)["r"] == 6
    found = counts(flows, {"a": 2, "b": 6}, "r s", r=3, s=None)
    assert (found["r"], found["s"]) == (3, 3)


def test_joins_that_share_a_topic_are_one_group() -> None:
    flows = [flow("a", "r"), flow("b", "s"), flow("r s c")]
    found = counts(flows, {"a": 2, "b": 6, "c": 4}, "r s", "s c", r=None, s=None)
    assert (found["r"], found["s"]) == (4, 4)


def test_where_records_come_back_what_is_known_counts() -> None:
    # A foreign-key join subscribes at the right's tasks, which respond to the left's.
    flows = [flow("left answers", "questions"), flow("right questions", "answers")]
    groups = ("left answers", "right questions")
    found = counts(flows, {"left": 3, "right": 5}, *groups, questions=None, answers=None)
    assert (found["questions"], found["answers"]) == (5, 3)


def test_what_does_not_follow_is_left_out() -> None:
    flows = [flow("a", "r"), flow("b", "s"), flow("r s"), flow("x", "t"), flow("t c")]
    found = counts(flows, {"a": 2, "x": 1}, "t c", r=None, s=None, t=None)
    assert found == {"a": 2, "x": 1, "r": 2}
    halves = [flow("a b", "r"), flow("a r", "s"), flow("s")]
    assert counts(halves, {"a": 2}, r=None, s=None) == {"a": 2}


def test_topics_that_can_not_be_made_equal_are_refused() -> None:
    flows = [flow("c", "r"), flow("a b r")]
    with pytest.raises(TopologyError, match="'a' has 2, 'b' has 3: make them equal"):
        counts(flows, {"a": 2, "b": 3, "c": 1}, "a b")
    with pytest.raises(TopologyError, match="'a' has 3, 'r' has 2"):
        counts(flows, {"a": 3, "b": 3, "c": 1}, "a r", r=2)


def joined() -> App:
    app = App("a")
    orders, payments = (app.stream(topic, **TEXT) for topic in ("orders", "payments"))
    within = timedelta(minutes=5)
    orders.join(payments, lambda order, payment: order, within=within).to("out", **TEXT)
    return app


UNEVEN = "'orders' has 4, 'payments' has 8"


def test_an_application_that_joins_uneven_topics_does_not_start() -> None:
    check_topics(joined().topology(), {"orders": 4, "payments": 4, "out": 1}, "here:9092")
    with pytest.raises(TopologyError, match=UNEVEN):
        check_topics(joined().topology(), {"orders": 4, "payments": 8, "out": 1}, "here:9092")


def test_topics_that_become_uneven_end_the_thread_with_the_same_words() -> None:
    admin = FakeAdmin(Kafka({"orders": 4, "payments": 8, "out": 1}), Script())
    planner = StreamsPartitionAssignor(joined().topology(), StreamsConfig(), admin)
    with pytest.raises(StreamsError, match=UNEVEN):
        planner.assign_group({"m": SubscriptionInfo((), topology=planner.declared)})


def test_a_circle_that_only_a_repartition_topic_leads_into_has_what_that_one_has() -> None:
    # A table that is grouped, aggregated, grouped again and joined with what it was.
    flows = [flow("a", "r"), flow("r s", "s")]
    assert counts(flows, {"a": 3}, "r s", r=None, s=None) == {"a": 3, "r": 3, "s": 3}
    assert counts(flows, {"a": 3}, r=7, s=None)["s"] == 7
