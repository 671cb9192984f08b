"""Test that librdkafka's refusals become errors that name the missing right, and end the thread."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from streams.errors import AuthorizationError, CoordinatorMoved, OutcomeUnknown
from streams.runtime.clients import DataConsumer, translate_client_error, translate_produce_error
from streams.runtime.clients import admin_calls as admin_module
from streams.runtime.clients import consumer as consumer_module
from streams.runtime.clients import producer as producer_module
from streams.runtime.clients.admin import Admin
from streams.runtime.clients.errors import TopicRefused
from streams.runtime.clients.group_metadata import encode_group_metadata
from streams.runtime.clients.producer import StreamsProducer
from streams.settings.exception_handlers import ExceptionHandlers
from tests.unit.streams.runtime.world import World, build_counting_topology

TOPIC_REFUSED = KafkaError.TOPIC_AUTHORIZATION_FAILED
REFUSED = AuthorizationError("Write", "topic", "out")


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code, "why"))


class Answer:
    """Stands in for a future of confluent-kafka."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def result(self, timeout_s: float) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Topics:
    """Stands in for an admin client whose topics are `allowed` operations, or an error."""

    def __init__(self, **described: Any) -> None:
        self._described = described

    def describe_topics(self, asked: Any, *, include_authorized_operations: bool) -> Any:
        assert include_authorized_operations
        return {topic: Answer(self._described[topic]) for topic in asked.topic_names}


def create_admin(monkeypatch: pytest.MonkeyPatch, **described: Any) -> Admin:
    monkeypatch.setattr(admin_module, "create_client", lambda *_: Topics(**described))
    return Admin({}, "", 1.0)


def allow(*operations: AclOperation) -> Any:
    return SimpleNamespace(authorized_operations=[*operations])


def test_rights_to_topics_are_named_by_topic_and_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    described = {
        "both": allow(AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE),
        "read": allow(AclOperation.READ, AclOperation.DESCRIBE),
        "none": failure(TOPIC_REFUSED),
        "new": failure(KafkaError.UNKNOWN_TOPIC_OR_PART),
        "old_broker": SimpleNamespace(authorized_operations=None),
    }
    admin = create_admin(monkeypatch, **described)
    needed = ("Read", "Write")
    admin.check_topic_rights({})
    admin.check_topic_rights({"both": needed, "new": needed, "old_broker": needed})
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'read'"):
        admin.check_topic_rights({"both": needed, "read": needed})
    with pytest.raises(AuthorizationError, match="not allowed to Read topic 'none'"):
        admin.check_topic_rights({"none": needed})
    with pytest.raises(AuthorizationError, match="not allowed to DescribeConfigs topic 'both'"):
        admin.check_topic_rights({"both": ("DescribeConfigs",)})


@pytest.mark.parametrize(
    ("call", "arguments", "code", "message"),
    [
        (
            "send_offsets_to_transaction",
            ([], encode_group_metadata("a", 1, "m", None)),
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            "not allowed to Read group 'a': ",
        ),
        (
            "commit_transaction",
            (),
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "not allowed to Write transactional id 'a-0': ",
        ),
        (
            "poll_delivery_reports",
            (),
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            "not allowed to IdempotentWrite cluster 'kafka-cluster': ",
        ),
    ],
)
def test_a_producer_names_the_group_the_transactional_id_or_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    arguments: tuple[Any, ...],
    code: int,
    message: str,
) -> None:
    def refuse(*_: Any) -> None:
        raise failure(code)

    client = SimpleNamespace(
        produce=refuse, poll=refuse, commit_transaction=refuse, send_offsets_to_transaction=refuse
    )
    monkeypatch.setattr(producer_module, "create_client", lambda *_: client)
    producer = StreamsProducer("a-0", {}, transactional=False, timeout_s=1.0)
    with pytest.raises(AuthorizationError, match=message):
        getattr(producer, call)(*arguments)


def test_a_fatal_error_that_confluent_kafka_loses_in_a_callback_is_named_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lose(*_: Any) -> None:
        raise SystemError("returned a result with an exception set")

    def refuse(*_: Any) -> None:
        raise failure(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    client = SimpleNamespace(produce=lose, flush=lose, begin_transaction=refuse)
    monkeypatch.setattr(producer_module, "create_client", lambda *_: client)
    producer = StreamsProducer("a-0", {}, transactional=False, timeout_s=1.0)
    with pytest.raises(AuthorizationError, match="not allowed to Write transactional id 'a-0'"):
        producer.flush()


def test_a_refused_topic_is_named_where_it_is_known() -> None:
    assert isinstance(translate_client_error(failure(TOPIC_REFUSED), "commit"), TopicRefused)
    named = translate_produce_error(failure(TOPIC_REFUSED), "what", "out")
    assert isinstance(named, AuthorizationError)
    assert (named.operation, named.resource, named.name) == ("Write", "topic", "out")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (TOPIC_REFUSED, "not allowed to Read topic 'in'"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "not allowed to Read group 'a'"),
    ],
)
def test_a_consumer_names_the_topic_or_the_group(
    monkeypatch: pytest.MonkeyPatch, code: int, message: str
) -> None:
    refused = SimpleNamespace(
        error=lambda: KafkaError(code, "why"), topic=lambda: "in", partition=lambda: 0
    )
    client = SimpleNamespace(consume=lambda *_: [refused])
    monkeypatch.setattr(consumer_module, "create_client", lambda *_: client)
    with pytest.raises(AuthorizationError, match=message):
        DataConsumer({"group.id": "a"}).poll_records(1, 0.0)


class LimitedWorld(World):
    """Represents a world in which a look at the rights finds what `refusal` says, if anything."""

    refusal: Exception | None = None
    looks = 0

    def on_look(self) -> None:
        """Do nothing; a test may replace it."""

    def check_rights(self) -> None:
        self.looks += 1
        self.on_look()
        if self.refusal is not None:
            raise self.refusal


def test_a_failure_that_comes_back_is_looked_at_for_a_missing_right(tmp_path: Path) -> None:
    world = LimitedWorld(build_counting_topology(), tmp_path)
    world.refusal = REFUSED
    world.load("1")
    for attempt in (1, 2, 3):
        unknown = OutcomeUnknown("1 message(s) failed delivery")
        world.script.fail("producer.commit_transaction", unknown, at=attempt)
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'out'"):
        world.run_until(world.consumed)
    assert (world.looks, world.loop.counters.recoveries) == (1, 2)


def test_a_failure_is_looked_at_though_other_tasks_commit_in_between(tmp_path: Path) -> None:
    world = LimitedWorld(build_counting_topology(), tmp_path)
    world.refusal = REFUSED
    world.load(*map(str, range(100)))
    for attempt in (1, 3):
        world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), at=attempt)
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'out'"):
        world.run_until(world.consumed)
    assert (world.loop.counters.commits, world.loop.counters.recoveries) == (1, 2)


@pytest.mark.parametrize("refusal", [None, OutcomeUnknown("no answer")])
def test_a_failure_with_all_rights_is_recovered_from(
    tmp_path: Path, refusal: Exception | None
) -> None:
    world = LimitedWorld(build_counting_topology(), tmp_path)
    world.refusal = refusal
    world.load("1")
    for attempt in (1, 2, 3):
        world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), at=attempt)
    world.run_until(world.consumed)
    assert world.loop.counters.recoveries == 3
    assert world.looks == 1  # neither at the first one, which may pass, nor at each further one


def test_a_coordinator_that_has_moved_is_no_missing_right(tmp_path: Path) -> None:
    world = LimitedWorld(build_counting_topology(), tmp_path)
    world.load("1")
    for attempt in (1, 2, 3):
        moved = CoordinatorMoved("the group's coordinator has moved")
        world.script.fail("producer.send_offsets_to_transaction", moved, at=attempt)
    world.run_until(world.consumed)
    assert (world.looks, world.loop.counters.recoveries) == (0, 3)


def test_the_first_failure_for_a_while_may_pass(tmp_path: Path) -> None:
    world = LimitedWorld(build_counting_topology(), tmp_path)
    for value in "123":
        world.load(value)
        world.script.fail("producer.commit_transaction", OutcomeUnknown("?"))
        world.turn(100)
        assert world.consumed()
        world.clock.elapsed_s += 120
    assert (world.looks, world.loop.counters.recoveries) == (0, 3)


def test_rights_are_looked_at_again_after_a_while(tmp_path: Path) -> None:
    world = LimitedWorld(build_counting_topology(), tmp_path, task_timeout_ms=120_000)
    world.load("1")
    looked_at_s: list[float] = []

    def note_time() -> None:
        looked_at_s.append(world.clock.elapsed_s)
        if len(looked_at_s) == 2:
            raise REFUSED

    world.on_look = note_time  # type: ignore[method-assign]
    for attempt in range(1, 1_000):
        world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), at=attempt)
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'out'"):
        world.run_until(lambda: False)
    first_s, second_s = looked_at_s
    assert 60 <= second_s - first_s < 61


def test_a_missing_right_is_named_rather_than_the_time_without_a_commit(tmp_path: Path) -> None:
    world = LimitedWorld(build_counting_topology(), tmp_path, task_timeout_ms=5_000)
    world.load("1")
    for attempt in range(1, 1_000):
        world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), at=attempt)

    def refuse_later() -> None:
        if world.looks == 2:
            world.refusal = REFUSED

    world.on_look = refuse_later  # type: ignore[method-assign]
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'out'"):
        world.run_until(lambda: False)
    assert world.looks == 2


def test_a_refused_topic_is_looked_for_at_once(tmp_path: Path) -> None:
    world = LimitedWorld(build_counting_topology(), tmp_path)
    world.refusal = REFUSED
    world.load("1")
    world.script.fail("producer.send_offsets_to_transaction", TopicRefused("which one?"))
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'out'"):
        world.run_until(world.consumed)
    assert world.loop.counters.recoveries == 0


def test_no_handler_may_skip_what_is_not_allowed(tmp_path: Path) -> None:
    handlers = ExceptionHandlers(production="skip")
    world = World(build_counting_topology(), tmp_path, handlers=handlers)
    world.load("1")
    world.script.fail("produce out", failure(TOPIC_REFUSED))
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'out'"):
        world.run_until(world.consumed)
    too_large = World(build_counting_topology(), tmp_path, handlers=handlers)
    too_large.load("1")
    too_large.script.fail("produce out", failure(KafkaError.MSG_SIZE_TOO_LARGE))
    too_large.run_until(too_large.consumed)
