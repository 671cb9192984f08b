"""Test what handlers do with a record that fails, and that nothing beside it is affected."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from state.shown_values import ShownValues, hide_values, limit_shown_values
from streams import (
    App,
    ConfigError,
    ErrorContext,
    Processor,
    Record,
    SerdeError,
    Store,
    StreamsConfig,
    StreamsError,
    dead_letter,
    serdes,
)
from streams.errors import OutcomeUnknown, TaskMigrated
from streams.runtime.clients.errors import RecordRefused
from streams.settings.config import load_config
from streams.settings.exception_handlers import ExceptionHandlers
from tests.unit.streams.bound import BoundTask

BOTH: Any = {"key": serdes.string, "value": serdes.string}
TOO_LARGE = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))


def refuse(value: str) -> str:
    if value == "poison":
        raise ValueError("not this one")
    return value.upper()


def refuse_pair(key: str, value: str) -> Any:
    return key, refuse(value)


class Refusing(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(refuse(record.value)))


def one_by_one(value: str) -> Any:
    for letter in value:
        yield letter
        refuse(value)


STEPS: dict[str, Callable[[Any], Any]] = {
    "filter": lambda s: s.filter(lambda k, v: refuse(v), name="bad"),
    "filter_not": lambda s: s.filter_not(lambda k, v: not refuse(v), name="bad"),
    "map": lambda s: s.map(refuse_pair, name="bad", **BOTH),
    "map_values": lambda s: s.map_values(refuse, name="bad"),
    "flat_map": lambda s: s.flat_map(lambda k, v: [refuse_pair(k, v)], name="bad", **BOTH),
    "flat_map_values": lambda s: s.flat_map_values(lambda v: [refuse(v)], name="bad"),
    "select_key": lambda s: s.select_key(lambda k, v: refuse(v), name="bad", key=serdes.string),
    "peek": lambda s: s.peek(lambda k, v: refuse(v), name="bad"),
    "process": lambda s: s.process(Refusing, name="bad", **BOTH),
    "process_values": lambda s: s.process_values(Refusing, name="bad"),
}


def branching(steps: Callable[[Any], Any], **handlers: Any) -> BoundTask:
    """Bind `steps` between two branches that write to `before` and `after`."""
    app = App("a")
    stream = app.stream("in", **BOTH)
    stream.to("before")
    steps(stream).to("out", name="write")
    stream.to("after")
    return BoundTask(app, **handlers)


def topics(task: BoundTask) -> list[str]:
    return [topic for topic, *_ in task.produced]


@pytest.mark.parametrize("step", STEPS)
def test_a_function_that_raises_fails_the_thread_and_names_step_record_and_line(step: str) -> None:
    task = branching(STEPS[step])
    message = (
        r"step 'bad' can't process in\[0\]@7: ValueError\('not this one'\) in refuse, .*\.py:"
        r"\d+: .*; processing_handler= decides about such records \(docs/errors\.md\)$"
    )
    with pytest.raises(StreamsError, match=message):
        task.pipe("k", "poison")


@pytest.mark.parametrize("step", STEPS)
def test_what_is_skipped_is_missing_in_its_branch_and_nowhere_else(step: str) -> None:
    task = branching(STEPS[step], processing="skip")
    task.pipe("k", "poison")
    assert topics(task) == ["before", "after"]
    task.pipe("k", "fine")
    assert topics(task) == ["before", "after", "before", "out", "after"]
    assert task.counters.dropped == 1
    assert task.counters.dead_letters == 0


def test_what_a_generator_gave_before_it_failed_stays() -> None:
    task = branching(lambda s: s.flat_map_values(one_by_one, name="bad"), processing="skip")
    task.pipe("k", "poison")
    assert [value for topic, _, value, *_ in task.produced if topic == "out"] == [b"p"]


def test_a_failure_after_a_step_is_not_taken_for_a_failure_of_the_step() -> None:
    asked: list[str] = []

    def ask(where: ErrorContext) -> Any:
        asked.append(where.step)
        return "skip"

    def steps(stream: Any) -> Any:
        twice = stream.flat_map_values(lambda v: [v, "fine"], name="first")
        return twice.process_values(Echo, name="second").map_values(refuse, name="third")

    class Echo(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record)

    task = branching(steps, processing=ask)
    task.pipe("k", "poison")
    assert asked == ["third"]
    assert [value for topic, _, value, *_ in task.produced if topic == "out"] == [b"FINE"]


def test_a_dead_letter_is_the_record_as_it_was_read_with_what_was_wrong() -> None:
    class Rewriting(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(
                record.with_value("poison").with_headers([("by", b"me")]).with_timestamp(99)
            )

    task = branching(
        lambda s: s.process(Rewriting, **BOTH).map_values(refuse, name="bad"),
        processing=dead_letter("dead"),
    )
    task.pipe("k", "v", timestamp_ms=42)
    ((_, key, value, timestamp_ms, headers),) = [p for p in task.produced if p[0] == "dead"]
    assert (key, value, timestamp_ms) == (b"k", b"v", 42)
    assert headers[0] == ("trace", b"1")
    found = dict(headers[1:])
    stack = found.pop("__streams.errors.stacktrace").decode()
    assert "in refuse" in stack
    assert "ValueError: not this one" in stack
    assert found == {
        "__streams.errors.exception": b"builtins.ValueError",
        "__streams.errors.message": b"not this one",
        "__streams.errors.topic": b"in",
        "__streams.errors.partition": b"0",
        "__streams.errors.offset": b"7",
    }
    assert (task.counters.dropped, task.counters.dead_letters) == (1, 1)


def unreadable(**handlers: Any) -> BoundTask:
    app = App("a")
    app.stream("in", key=serdes.string, value=serdes.int64, name="read").to("out")
    return BoundTask(app, **handlers)


def test_a_record_that_cannot_be_read_is_skipped_or_a_dead_letter() -> None:
    task = unreadable(deserialization="skip")
    task.pipe("k", "v")
    assert task.produced == []
    task = unreadable(deserialization=dead_letter("dead"))
    task.pipe("k", "v")
    ((topic, key, value, _, headers),) = task.produced
    assert (topic, key, value) == ("dead", b"k", b"v")
    assert dict(headers)["__streams.errors.exception"] == b"builtins.ValueError"


@pytest.mark.parametrize("timestamp_ms", [-1, -5, -(2**63), 1, 2**63 - 1])
def test_a_dead_letter_keeps_the_time_of_its_record_or_none(timestamp_ms: int) -> None:
    task = unreadable(deserialization=dead_letter("dead"))
    task.pipe("k", "v", timestamp_ms=timestamp_ms)
    ((_, _, _, written_ms, headers),) = task.produced
    assert written_ms == timestamp_ms
    assert "__streams.errors.timestamp" not in dict(headers)


def test_a_header_has_the_time_that_librdkafka_would_replace_by_the_present() -> None:
    task = unreadable(deserialization=dead_letter("dead"))
    task.pipe("k", "v", timestamp_ms=0)
    ((_, _, _, written_ms, headers),) = task.produced
    assert (written_ms, dict(headers)["__streams.errors.timestamp"]) == (1, b"0")


@pytest.mark.parametrize("other", ["processing", "production"])
def test_each_handler_is_for_its_own_stage(other: str) -> None:
    message = r"step 'read' can't read in\[0\]@7.*; deserialization_handler= decides about such"
    with pytest.raises(SerdeError, match=message):
        unreadable(**{other: "skip"}).pipe("k", "v")


def test_a_handler_that_lets_a_record_fail_is_not_told_of_itself() -> None:
    with pytest.raises(SerdeError, match="can't read") as failed:
        unreadable(deserialization=lambda _: "fail").pipe("k", "v")
    assert "_handler=" not in str(failed.value)


def unwritable(**handlers: Any) -> BoundTask:
    app = App("a")
    stream = app.stream("in", **BOTH)
    stream.map_values(lambda value: 7, value=serdes.string).to("out", name="write")  # type: ignore[arg-type,return-value]
    stream.to("after")
    return BoundTask(app, **handlers)


def test_a_record_that_a_serde_cannot_write_is_for_the_production_handler() -> None:
    asked: list[ErrorContext] = []

    def ask(where: ErrorContext) -> Any:
        asked.append(where)
        return dead_letter("dead")

    task = unwritable(production=ask)
    task.pipe("k", "v", timestamp_ms=3)
    assert topics(task) == ["dead", "after"]
    (where,) = asked
    assert (where.stage, where.step, where.target, where.task_id) == (
        "production",
        "write",
        "out",
        "0_0",
    )
    assert (where.key, where.value, where.source_key, where.source_value) == ("k", 7, b"k", b"v")
    assert (where.topic, where.partition, where.offset, where.timestamp_ms) == ("in", 0, 7, 3)
    assert where.headers == (("trace", b"1"),)
    assert isinstance(where.error, AttributeError | TypeError)


@pytest.mark.parametrize("full", [0, 1])
def test_a_record_that_is_too_large_is_for_the_production_handler(full: int) -> None:
    for handler, expected in (("skip", ["before", "after"]), ("fail", ["before"])):
        task = branching(lambda s: s, production=handler)
        task.refused["out"] = TOO_LARGE
        task.full_queue_count = full
        if handler == "skip":
            task.pipe("k", "v")
        else:
            message = r"step 'write' can't write in\[0\]@7 to topic 'out'.*MSG_SIZE_TOO_LARGE"
            with pytest.raises(StreamsError, match=message):
                task.pipe("k", "v")
        assert topics(task) == expected


def test_words_of_kafka_stay_where_the_value_has_them_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = branching(lambda s: s, production="skip")
    task.refused["out"] = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large"))
    with limit_shown_values(ShownValues.TYPES):
        task.pipe("k", "too large")
        refused = RecordRefused(KafkaError(KafkaError.INVALID_RECORD), "why: too large")
        assert hide_values(str(refused), refused, "too large") == "why: too large"
    assert 'str="too large"' in caplog.text


@pytest.mark.parametrize(
    ("raised", "meant"),
    [
        (KafkaException(KafkaError(KafkaError._FENCED)), TaskMigrated),
        (KafkaException(KafkaError(KafkaError._STATE)), OutcomeUnknown),
        (OutcomeUnknown("no answer"), OutcomeUnknown),
    ],
)
def test_errors_that_name_a_recovery_are_for_no_handler(
    raised: Exception, meant: type[Exception]
) -> None:
    task = branching(STEPS["process"], processing="skip", production="skip")
    task.refused["out"] = raised
    with pytest.raises(meant):
        task.pipe("k", "v")


def test_a_punctuation_that_fails_is_processing_and_its_dead_letter_comes_from_nowhere() -> None:
    class Ticking(Processor[str, str, str, str]):
        def init(self, context: Any) -> None:
            context.schedule(10, lambda now_ms: refuse("poison"))

    def task_with(**handlers: Any) -> BoundTask:
        app = App("a")
        app.stream("in", **BOTH).process(Ticking, name="tick", **BOTH).to("out")
        return BoundTask(app, **handlers)

    with pytest.raises(StreamsError, match="step 'tick' can't process"):
        task_with().punctuate(5)
    task = task_with(processing=dead_letter("dead"))
    task.punctuate(5)
    ((topic, key, value, timestamp_ms, headers),) = task.produced
    assert (topic, key, value, timestamp_ms) == ("dead", None, None, 5)
    found = dict(headers)
    assert found["__streams.errors.topic"] is None
    assert found["__streams.errors.partition"] == found["__streams.errors.offset"] == b"-1"


def test_a_full_queue_is_waited_for_by_a_dead_letter_too() -> None:
    task = unreadable(deserialization=dead_letter("dead"))
    task.full_queue_count = 1
    task.pipe("k", "v")
    assert (task.made_room, topics(task)) == (1, ["dead"])


def test_a_dead_letter_that_cannot_be_written_fails_and_says_so() -> None:
    task = unreadable(deserialization=dead_letter("dead"))
    task.refused["dead"] = TOO_LARGE
    message = r"the dead letter of in\[0\]@7 can't be written to topic 'dead'.*MSG_SIZE_TOO_LARGE"
    with pytest.raises(StreamsError, match=message):
        task.pipe("k", "v")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda where: dead_letter("nowhere"),
            "'nowhere', which the deserialization handler",
        ),
        (lambda where: True, r"answered True on in\[0\]@7: it must return"),
        (lambda where: 1 / 0, r"itself failed on in\[0\]@7: ZeroDivisionError"),
        (lambda where: "fail", "step 'read' can't read"),
    ],
)
def test_what_a_handler_of_the_users_may_answer(answer: Any, message: str) -> None:
    with pytest.raises(StreamsError, match=message):
        unreadable(deserialization=answer).pipe("k", "v")


def test_skipped_records_are_logged_at_once_and_then_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = unreadable(deserialization="skip")
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            task.pipe("k", "v")
        assert len(caplog.records) == 1
        task.clock_s = 10.0
        task.pipe("k", "v")
    assert [record.getMessage()[:55] for record in caplog.records] == [
        "step 'read': deserialization of in[0]@7 failed: skipped"
    ] * 2
    assert "(4 more like it since the last message)" in caplog.records[1].getMessage()


def test_a_key_that_a_store_refuses_is_a_failure_of_its_record() -> None:
    app = App("a")
    stream = app.stream("in", **BOTH)
    stream.group_by_key(key=serdes.bytes).count(store=Store.in_memory("c"), name="bad")
    stream.to("after")
    task = BoundTask(app, processing="skip")
    task.pipe("k", "v")
    assert topics(task) == ["after"]
    assert task.stores["c"].list_written_entries() == []


def test_a_key_that_a_tables_store_refuses_is_too() -> None:
    app = App("a")
    stream = app.stream("in", **BOTH)
    stream.to_table(key=serdes.int64, store=Store.in_memory("t"))
    stream.to("after")
    task = BoundTask(app, processing="skip")
    task.pipe("k", "v")
    assert topics(task) == ["after"]
    assert task.stores["t"].list_written_entries() == []


def test_handlers_are_settings() -> None:
    config = load_config(
        deserialization_handler="skip",
        processing_handler="dead_letter:dead",
        production_handler=repr,
    )
    assert config.handlers == ExceptionHandlers("skip", dead_letter("dead"), repr)  # type: ignore[arg-type]
    assert list(config.handlers.dead_letter_topics()) == ["dead"]
    assert StreamsConfig().handlers == ExceptionHandlers()
    app = App("a", config=StreamsConfig(processing_handler=dead_letter("dead")))
    assert app.config.handlers.processing == dead_letter("dead")


def test_handlers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_PROCESSING_HANDLER", "dead_letter:dead")
    assert load_config().handlers.processing == dead_letter("dead")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ü", "x" * 250])
def test_a_dead_letter_topic_with_a_name_that_no_topic_can_have_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="a dead-letter topic is a name, not"):
        dead_letter(name)
    with pytest.raises(ConfigError, match="setting 'processing_handler'"):
        load_config(processing_handler=f"dead_letter:{name}")


def test_a_handler_that_names_an_illegal_topic_fails_on_its_record() -> None:
    message = r"handler itself failed on in\[0\]@7: ValueError.*not 'a/b': it may have letters"
    with pytest.raises(StreamsError, match=message):
        unreadable(deserialization=lambda _: dead_letter("a/b")).pipe("k", "v")


@pytest.mark.parametrize("given", ["ignore", "dead_letter:", 7, None])
def test_a_handler_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="setting 'processing_handler'"):
        load_config(processing_handler=given)
