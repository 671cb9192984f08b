"""Test which producer a task uses under each guarantee, and when producers open and close."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streams.errors import OutcomeUnknown, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.runtime.clients.interfaces import ProducerClient
from streams.runtime.threads.producer_creation import RequireWanted
from streams.runtime.threads.producers import TaskProducers
from tests.unit.streams.runtime.fakes import Clock, FakeProducer, Script
from tests.unit.streams.runtime.kafka import Kafka


class Made:
    """Holds the task producers, and a list of the producers that they have created."""

    def __init__(
        self, guarantee: str, name_task: Callable[[str], str] = str, application: str = "app"
    ) -> None:
        self.script = Script()
        self.clock = Clock()
        self.made: list[FakeProducer] = []
        self._kafka = Kafka()
        self.known = True
        self.producers = TaskProducers(
            self._new,
            guarantee=guarantee,
            application_id=application,
            thread_id="app-slot-0",
            is_member=self._is_member,
            host=self.clock,
            creation_timeout_ms=60_000,
            name_task=name_task,
        )

    def get_producer(self, task_name: str) -> ProducerClient:
        """Return a task's producer, which is created as it is needed."""
        assert self.producers.try_prepare_producer(task_name)
        return self.producers.get_producer(task_name)

    def _new(self, name: str, require_wanted: RequireWanted = None) -> FakeProducer:
        producer = FakeProducer(self._kafka, self.script, name=name)
        self.made.append(producer)
        return producer

    def _is_member(self) -> bool:
        with self.script.call("is_member"):
            return self.known

    @property
    def names(self) -> list[str]:
        return [producer.name for producer in self.made]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_the_tasks_of_a_thread_share_its_producer(guarantee: str) -> None:
    thread = Made(guarantee)
    assert thread.get_producer("0_0") is thread.get_producer("1_3")
    assert thread.names == ["app-slot-0"]


def test_two_applications_never_share_the_id_of_a_producer() -> None:
    ids = []
    for application, task in (("stats", "daily-views_0"), ("stats-daily", "views_0")):
        thread = Made("exactly_once", application=application)
        thread.get_producer(task)
        ids += thread.names
    assert len(set(ids)) == 2, ids


def test_with_a_producer_for_each_task_its_id_is_the_tasks() -> None:
    thread = Made("exactly_once")
    thread.get_producer("0_0")
    thread.get_producer("1_3")
    thread.get_producer("0_0")
    assert thread.names == ["app-task:0_0", "app-task:1_3"]


def test_the_id_of_a_tasks_producer_does_not_follow_its_number() -> None:
    thread = Made("exactly_once", {"0_0": "lines_0", "1_0": "pages_0"}.__getitem__)
    thread.get_producer("0_0")
    first = thread.get_producer("1_0")
    assert thread.names == ["app-task:lines_0", "app-task:pages_0"]
    thread.producers.release_producer("1_0")
    assert first.discarded  # type: ignore[attr-defined]


def test_no_producer_is_made_before_a_task_needs_one() -> None:
    thread = Made("exactly_once_v2")
    thread.producers.poll_delivery_reports()
    thread.producers.discard_producers()
    thread.producers.close_producers()
    assert thread.made == []


def test_a_producer_that_could_not_be_made_is_asked_for_again() -> None:
    thread = Made("exactly_once_v2")
    thread.script.fail("producer.init", OutcomeUnknown("no broker"))
    with pytest.raises(OutcomeUnknown):
        thread.get_producer("0_0")
    thread.get_producer("0_0")
    assert thread.names == ["app-slot-0"]


def test_the_producer_of_a_thread_outlives_its_tasks() -> None:
    thread = Made("exactly_once_v2")
    before = thread.get_producer("0_0")
    thread.producers.release_producer("0_0")
    assert thread.get_producer("0_0") is before
    assert thread.script.filter_calls("producer.try_abort_and_close", "producer.discard") == []


def test_the_producer_of_a_task_is_closed_with_it() -> None:
    thread = Made("exactly_once")
    thread.get_producer("0_0")
    thread.get_producer("0_1")
    thread.producers.release_producer("0_0")
    assert [producer.discarded for producer in thread.made] == [True, False]
    assert thread.script.filter_calls("producer.try_abort_and_close") == [
        "producer.try_abort_and_close"
    ]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once"])
def test_after_they_were_given_up_the_next_ones_are_new(guarantee: str) -> None:
    thread = Made(guarantee)
    before = thread.get_producer("0_0")
    thread.producers.discard_producers()
    assert thread.get_producer("0_0") is not before
    assert thread.script.filter_calls("producer.discard", "producer.init") == [
        "producer.init",
        "producer.discard",
        "producer.init",
    ]


def test_a_zombie_does_not_take_a_tasks_id_back_from_its_successor() -> None:
    thread = Made("exactly_once")
    thread.get_producer("0_0")
    thread.producers.discard_producers()  # fenced
    thread.known = False
    with pytest.raises(TaskMigrated, match="task 0_0 moved"):
        thread.get_producer("0_0")
    assert thread.names == ["app-task:0_0"]


def test_no_tasks_id_is_taken_while_the_group_can_not_be_asked() -> None:
    thread = Made("exactly_once")
    thread.script.fail("is_member", ConnectionLost("gone"))
    assert not thread.producers.try_prepare_producer("0_0")
    (wait,) = thread.producers.creations.waits
    assert "our membership: gone" in wait.failure
    assert thread.names == []


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_the_producer_of_a_thread_is_made_without_asking_for_its_id_is_the_slots(
    guarantee: str,
) -> None:
    thread = Made(guarantee)
    thread.known = False
    thread.get_producer("0_0")
    assert "is_member" not in thread.script.calls


def test_while_no_broker_answers_only_the_first_is_waited_for() -> None:
    thread = Made("exactly_once")
    for task in ("0_0", "0_1", "0_2", "0_3"):
        thread.get_producer(task)
    for producer in thread.made:
        producer.away = True
    thread.producers.release_producer("0_0")
    thread.producers.release_producer("0_1")
    thread.producers.close_producers()
    ends = thread.script.filter_calls("producer.try_abort_and_close", "producer.discard")
    assert ends == ["producer.try_abort_and_close", *["producer.discard"] * 3]
    assert all(producer.discarded for producer in thread.made)
