"""Test that a call which sends offsets of a deleted input ends before its time-out."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ClusterMetadata

from streams.errors import InputDeleted, TaskMigrated
from streams.runtime.clients.deleted_inputs import FIRST_LOOK_S, wrap_check_to_raise_if_deleted
from streams.runtime.clients.refusable_call import CHECK_INTERVAL_S

CHECKS = 100
SENT = [TopicPartition("words", 0, 7)]


class Brokers:
    """Answers which topics there are, with one answer after the other; None is no answer."""

    def __init__(self, *answers: Collection[str] | None) -> None:
        self._answers = list(answers)
        self.looks = 0

    def list_topics(self, *, timeout: float) -> ClusterMetadata:
        self.looks += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        metadata = ClusterMetadata()
        metadata.topics = dict.fromkeys(answer)
        return metadata


def count_checks_of_call(brokers: Brokers) -> int:
    """Return how many checks there are of a call that is never answered."""
    check = wrap_check_to_raise_if_deleted(lambda: None, SENT, brokers)
    for number in range(1, CHECKS + 1):
        try:
            check()
        except InputDeleted:
            return number
    return CHECKS


def test_a_call_for_a_deleted_input_ends_after_two_looks() -> None:
    brokers = Brokers({"other"})
    assert count_checks_of_call(brokers) * CHECK_INTERVAL_S <= 2 * FIRST_LOOK_S
    assert brokers.looks == 2


@pytest.mark.parametrize(
    "answers",
    [({"words"},), (None,), (set[str](), {"words"}), (set[str](), None, set[str](), {"words"})],
    ids=["there", "no answer", "missing once", "missing twice, not in a row"],
)
def test_a_call_goes_on_while_it_is_not_certain_that_the_input_is_gone(
    answers: tuple[Collection[str] | None, ...],
) -> None:
    assert count_checks_of_call(Brokers(*answers)) == CHECKS


def test_brokers_are_not_asked_before_a_call_has_waited_for_a_moment() -> None:
    brokers = Brokers(set())
    check = wrap_check_to_raise_if_deleted(lambda: None, SENT, brokers)
    for _ in range(round(FIRST_LOOK_S / CHECK_INTERVAL_S) - 1):
        check()
    looks = [brokers.looks]
    check()
    looks.append(brokers.looks)
    assert looks == [0, 1]


def test_what_the_check_of_the_call_raises_comes_first() -> None:
    def raise_migrated() -> None:
        raise TaskMigrated("fenced")

    check = wrap_check_to_raise_if_deleted(raise_migrated, SENT, Brokers(set()))
    with pytest.raises(TaskMigrated):
        check()
