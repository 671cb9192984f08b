"""Test that an internal topic which is gone, or has other partitions, ends the tasks soon."""

from __future__ import annotations

import pytest

from streams import App, serdes
from streams.common.counted import format_count
from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError
from streams.runtime.assigning.lost_topics import LostTopicCheck
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

CHANGELOG, REPARTITION = "a-c-changelog", "a-c-repartition"


class Checked:
    """Represents a cluster with the topics of an application that counts, and their check."""

    def __init__(self) -> None:
        app = App("a")
        stream = app.stream("in", key=serdes.string, value=serdes.string)
        stream.group_by(lambda key, value: value, key=serdes.string).count(store="c")
        self.kafka = Kafka({"in": 2, CHANGELOG: 2, REPARTITION: 2})
        self.clock, self.script = Clock(), Script()
        self._check = LostTopicCheck(
            app.topology(),
            FakeAdmin(self.kafka, self.script),
            lambda _: CommittedOffsets({}, []),
            self.clock.monotonic_s,
        )

    def check(self, after_s: float = 0.0) -> None:
        self.clock.advance_monotonic_clock(after_s)
        self._check.check_if_due()


@pytest.mark.parametrize(
    ("topic", "what"), [(CHANGELOG, "changelog"), (REPARTITION, "repartition topic")]
)
def test_a_topic_that_stays_away_is_named_with_what_it_is(topic: str, what: str) -> None:
    checked = Checked()
    checked.kafka.delete(topic)
    checked.check()
    checked.check(1.0)
    with pytest.raises(StreamsError, match=f"^{what} '{topic}' is not on the brokers: it was del"):
        checked.check(1.0)


def test_a_topic_that_a_broker_does_not_know_for_a_moment_is_not_deleted() -> None:
    checked = Checked()
    for _ in range(3):
        checked.kafka.delete(CHANGELOG)
        checked.check(1.5)
        checked.kafka.create_topic(CHANGELOG, 2)
        checked.check(1.5)


@pytest.mark.parametrize("topic", [CHANGELOG, REPARTITION])
@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_partitions_is_told_at_once(topic: str, count: int) -> None:
    checked = Checked()
    checked.kafka.delete(topic)
    checked.kafka.create_topic(topic, count)
    counted = format_count(count, "partition")
    text = f"internal topic '{topic}' has {counted} and the topology needs 2"
    with pytest.raises(StreamsError, match=text):
        checked.check()


def test_only_inputs_that_a_store_follows_are_blamed_for_the_count_of_its_changelog() -> None:
    app = App("a")
    counted = app.stream("in", key=serdes.string, value=serdes.string)
    counted.group_by_key().count(store="c")
    app.stream("idle", key=serdes.string, value=serdes.string).to("out")
    kafka, script = Kafka({"in": 2, "idle": 2, CHANGELOG: 3}), Script()
    kafka.load(Partition(CHANGELOG, 1), ("key", "value"))
    nothing = CommittedOffsets({}, [])
    admin = FakeAdmin(kafka, script)
    check = LostTopicCheck(app.topology(), admin, lambda _: nothing, Clock().monotonic_s)
    with pytest.raises(StreamsError, match="the offsets of input 'in' are gone while its state"):
        check.check_if_due()


def test_a_deleted_input_is_left_to_those_who_look_at_inputs() -> None:
    checked = Checked()
    checked.kafka.delete("in")
    for _ in range(4):
        checked.check(1.0)


def test_a_topic_that_may_not_be_described_is_not_called_deleted() -> None:
    checked = Checked()
    checked.kafka.delete(CHANGELOG)
    checked.check()
    refusal = AuthorizationError("Describe", "topic", CHANGELOG)
    checked.script.fail("admin.check_topic_rights", refusal)
    with pytest.raises(AuthorizationError, match="Describe"):
        checked.check(2.0)


def test_brokers_that_do_not_answer_prove_nothing() -> None:
    checked = Checked()
    checked.kafka.delete(CHANGELOG)
    checked.check()
    checked.script.fail("admin.fetch_partition_counts", OutcomeUnknown("no answer"))
    checked.check(5.0)
    with pytest.raises(StreamsError, match="it was deleted"):
        checked.check(1.0)


def test_brokers_are_asked_once_a_second_at_most() -> None:
    checked = Checked()
    for _ in range(10):
        checked.check(0.25)
    assert len(checked.script.filter_calls("admin.fetch_partition_counts")) == 3
