"""Test that a topic which a function chooses is looked up, in bounded time, and remembered."""

from __future__ import annotations

import pytest

from streams.errors import AuthorizationError, OutcomeUnknown, UnknownTopic
from streams.runtime.clients.errors import NotReady
from streams.runtime.tasks.chosen_topics import ChosenTopics
from tests.unit.streams.runtime.fakes import Clock


class Lookups:
    """Looks topics up in a cluster whose answers a test decides; time passes only in waits."""

    def __init__(self, missing_for_s: float = 300.0) -> None:
        self.clock = Clock()
        self.waited_s = 0.0
        self.answers: dict[str, list[Exception | int]] = {}
        """The answers of each topic, one after the other; the last one stays."""
        self.asked: list[str] = []
        self.topics = ChosenTopics(int(missing_for_s * 1_000), self.clock, self._wait)

    def _wait(self, seconds: float) -> None:
        self.clock.elapsed_s += seconds
        self.waited_s += seconds

    def _fetch_partition_count(self, topic: str) -> int:
        self.asked.append(topic)
        answers = self.answers.get(topic, [UnknownTopic(f"no topic {topic!r}")])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def require(self, topic: str) -> None:
        self.topics.require_chosen_topic_exists(topic, self._fetch_partition_count)


def test_a_topic_that_exists_is_looked_up_without_a_wait() -> None:
    lookups = Lookups()
    lookups.answers["here"] = [3]
    lookups.require("here")
    assert (lookups.asked, lookups.waited_s) == (["here"], 0.0)


def test_a_topic_that_a_broker_learns_of_late_is_found() -> None:
    lookups = Lookups()
    lookups.answers["new"] = [UnknownTopic("not yet"), NotReady("no leader yet"), 1]
    lookups.require("new")
    assert lookups.asked == ["new"] * 3


def test_a_missing_topic_is_refused_within_a_second() -> None:
    lookups = Lookups()
    with pytest.raises(UnknownTopic, match="no topic 'gone'"):
        lookups.require("gone")
    assert 0.5 < lookups.waited_s < 1.0


def test_a_missing_topic_is_remembered_until_its_time_is_over() -> None:
    lookups = Lookups(missing_for_s=60.0)
    with pytest.raises(UnknownTopic):
        lookups.require("gone")
    asked = len(lookups.asked)
    lookups.clock.elapsed_s += 59.0
    with pytest.raises(UnknownTopic, match="no topic 'gone'"):
        lookups.require("gone")
    assert len(lookups.asked) == asked
    lookups.clock.elapsed_s += 2.0
    lookups.answers["gone"] = [1]
    lookups.require("gone")


def test_many_missing_topics_take_a_tenth_of_the_time() -> None:
    lookups = Lookups()
    for number in range(1_000):
        with pytest.raises(UnknownTopic):
            lookups.require(f"gone-{number}")
        lookups.clock.elapsed_s += 0.01  # the rest of the work
    assert lookups.waited_s < 0.15 * lookups.clock.elapsed_s
    assert {f"gone-{number}" for number in range(1_000)} == set(lookups.asked)


def test_a_topic_that_this_user_may_not_use_is_refused_with_the_missing_right() -> None:
    lookups = Lookups()
    lookups.answers["secret"] = [AuthorizationError("Write", "topic", "secret")]
    for _ in range(2):
        with pytest.raises(UnknownTopic, match="not allowed to Write topic 'secret'"):
            lookups.require("secret")
    assert lookups.asked == ["secret"]


def test_a_broker_that_does_not_answer_says_nothing_of_a_topic() -> None:
    lookups = Lookups()
    lookups.answers["here"] = [OutcomeUnknown("no answer"), 1]
    with pytest.raises(OutcomeUnknown):
        lookups.require("here")
    lookups.require("here")


def test_a_topic_that_was_refused_when_it_was_written_is_remembered_too() -> None:
    lookups = Lookups(missing_for_s=60.0)
    lookups.answers["secret"] = [1]
    lookups.require("secret")
    lookups.topics.refuse_topic_for_a_while("secret", "not allowed to Write topic 'secret'")
    with pytest.raises(UnknownTopic, match="not allowed to Write topic 'secret'"):
        lookups.require("secret")
    lookups.clock.elapsed_s += 61.0
    lookups.require("secret")
