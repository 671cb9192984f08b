"""Test each name, keyword, default and form of the public interface, as a user writes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import streams
from streams import (
    App,
    ConfigError,
    Processor,
    Record,
    RecordContext,
    Store,
    StreamsConfig,
    TopologyTestDriver,
    dead_letter,
    serdes,
)
from tests.unit.streams.serdes.test_registry import needs_extra

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
JSON: dict[str, Any] = {"key": serdes.string, "value": serdes.json}


def driven(app: App, **how: Any) -> TopologyTestDriver:
    return TopologyTestDriver(app, stores="memory", **how)


def words(**settings: Any) -> App:
    app = App("word-count", **settings)
    counts = (
        app.stream("lines", key=serdes.string, value=serdes.string)
        .flat_map_values(str.split)
        .group_by(lambda _, word: word, key=serdes.string)
        .count(store="counts")
    )
    counts.to_stream().to("counts-by-word", key=serdes.string, value=serdes.int64)
    return app


# An application


def test_words_are_counted_as_the_first_example_says() -> None:
    driver = TopologyTestDriver(words(), partitions={"lines": 4}, seed=7)
    with driver:
        driver.topic("lines").pipe("k", "to be or not to be", timestamp_ms=0)
        counts = {"to": 2, "be": 2, "or": 1, "not": 1}
        assert driver.topic("counts-by-word").read_table() == counts
        assert driver.store("counts").get("to") == 2
        driver.advance_wall_clock(ms=1000)
        driver.crash()
        driver.restart()
        assert driver.store("counts").get("to") == 2


def test_settings_rise_from_defaults_to_keywords(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert App("a").config.processing_guarantee == "exactly_once_v2"
    assert App("a").config.bootstrap_servers == "embedded"
    monkeypatch.setenv("MILLRACE_NUM_STREAM_THREADS", "2")
    file = tmp_path / "millrace.toml"
    file.write_text("num_stream_threads = 1\ncommit_interval_ms = 7\n")
    app = App("a")
    app.configure(file)
    assert (app.config.num_stream_threads, app.config.commit_interval_ms) == (2, 7)
    app = App("a", config=StreamsConfig(num_stream_threads=3))
    app.configure(file)
    assert app.config.num_stream_threads == 3
    app = App("a", config=StreamsConfig(num_stream_threads=3), num_stream_threads=4)
    app.configure(file)
    assert app.config.num_stream_threads == 4
    app.configure(file, num_stream_threads=5)
    assert app.config.num_stream_threads == 5


@pytest.mark.parametrize(
    ("client", "setting"),
    [
        ("consumer", "enable.auto.commit"),
        ("consumer", "isolation.level"),
        ("producer", "transactional.id"),
    ],
)
def test_a_clients_setting_that_would_break_the_guarantee_is_refused_by_name(
    client: str, setting: str
) -> None:
    good: dict[str, Any] = {client: {"client.rack": "r1"}}
    bad: dict[str, Any] = {client: {setting: "x"}}
    App("a", **good)
    with pytest.raises(ConfigError, match=setting):
        App("a", **bad)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_there_are_three_guarantees(guarantee: str) -> None:
    assert words(processing_guarantee=guarantee).config.processing_guarantee == guarantee


def test_a_topology_is_described_in_four_formats() -> None:
    app = words()
    assert "counts" in app.describe()
    for drawn, begin in (("mermaid", "flowchart"), ("dot", "digraph"), ("json", "{")):
        assert app.describe(format=drawn).startswith(begin)  # type: ignore[arg-type]
    assert app.topology().application_id == "word-count"


def test_what_runs_in_the_background_has_its_names() -> None:
    made = inspect.signature(App.start).return_annotation
    assert made == "RunningApp"
    from streams.processes.running import RunningApp

    for name in ("state", "wait_for", "metrics", "store", "close", "__enter__", "__exit__"):
        assert hasattr(RunningApp, name)
    assert inspect.signature(RunningApp.wait_for).parameters["timeout"].default == 30
    assert inspect.signature(App.run).parameters["workers"].default == 1


def test_all_that_is_public_comes_from_the_top() -> None:
    for name in streams.__all__:
        assert getattr(streams, name) is not None
    assert {
        "App", "StreamsConfig", "serdes", "windows", "Store", "Processor", "Windowed",
        "TopologyTestDriver", "dead_letter", "until_window_closes", "until_time_limit",
    } <= set(streams.__all__)  # fmt: skip


# Stores


def test_a_store_is_a_name_or_one_of_stores_constructors() -> None:
    changelog = {"min.cleanable.dirty.ratio": 0.2}
    kept = Store.persistent(
        "name",
        retention=timedelta(hours=1),
        logged=changelog,
        caching=False,
        ttl=timedelta(hours=1),
        rocksdb=lambda options: None,
    )
    assert kept.spec_fields["topic_settings"] == {"min.cleanable.dirty.ratio": "0.2"}
    assert Store.in_memory("name", logged=True, caching=False, ttl=1).spec_fields["logged"] is True
    assert Store.persistent("name", logged=False).spec_fields["logged"] is False
    assert (
        Store.versioned("name", history=timedelta(hours=1)).spec_fields["history_ms"] == 3_600_000
    )
    assert Store.window("name", size=1, retention=2).name == Store.session("name", retention=1).name


# Processors


class Dedupe(Processor):
    stores = ["seen"]  # noqa: RUF012  what a user types

    def init(self, context: Any) -> None:
        self.seen = context.store("seen")
        self.rates = context.store("rates")
        context.schedule(timedelta(minutes=1), self.expire, clock="stream")

    def expire(self, now_ms: int) -> None:
        assert self.context.record_context is None
        assert self.context.record_metadata is None

    def process(self, record: Record[str, str]) -> None:
        read = (record.topic, record.partition, record.offset)
        assert self.context.record_metadata == read
        assert self.context.record_context == RecordContext(*read, 5, record.headers)
        if self.seen.get(record.key) is None:
            self.seen.put(record.key, record.value)
            rate = self.rates.get(record.value)
            self.context.forward(record.with_value(rate), to="first")


def test_a_processor_has_its_store_a_global_table_a_timer_and_a_named_child() -> None:
    app = App("a")
    app.add_store(Store.persistent("seen", **TEXT))
    app.global_table("rates", **TEXT, store="rates")
    unique = app.stream("events", **TEXT).process(Dedupe, **TEXT)
    unique.peek(lambda key, value: None, name="first").to("out")
    unique.to("never")
    with driven(app) as driver:
        driver.topic("rates").pipe("v", "rated")
        for _ in range(2):
            driver.topic("events").pipe("k", "v", timestamp_ms=5, headers={"h": b"1"})
        record = driver.topic("out").read()
        assert (record.key, record.value, record.timestamp_ms) == ("k", "rated", 5)
        assert record.headers == (("h", b"1"),)
        assert (record.topic, record.partition, record.offset) == ("out", 0, 0)
        assert driver.topic("out").is_empty
        assert driver.topic("never").is_empty


def test_headers_are_pairs_or_a_dict_of_them() -> None:
    pairs = (("a", b"1"), ("b", None))
    record = Record("k", "v", 1, pairs)
    assert record == Record("k", "v", 1, list(pairs)) == Record("k", "v", 1, dict(pairs))
    assert record.with_headers(dict(pairs)).headers == record.with_headers(pairs).headers == pairs


# Serdes


@dataclass
class Order:
    id: int


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (serdes.string, "é"), (serdes.bytes, b"\x00"), (serdes.int32, -(2**31)),
        (serdes.int64, 2**63 - 1), (serdes.float64, 0.5), (serdes.json, {"a": [1]}),
        (serdes.json(Order), Order(1)), (serdes.json(), [1]), (serdes.pickle, {1, 2}),
        (serdes.of(str.encode, bytes.decode), "x"),
    ],
)  # fmt: skip
def test_every_serde_gives_back_what_it_took(serde: Any, value: object) -> None:
    assert serde.deserialize(serde.serialize(value)) == value


def test_integers_are_big_endian_and_twos_complement() -> None:
    assert serdes.int32.serialize(-2) == b"\xff\xff\xff\xfe"
    assert serdes.int64.serialize(258) == b"\x00\x00\x00\x00\x00\x00\x01\x02"
    assert serdes.none.name == "none"


@needs_extra
@pytest.mark.parametrize("make", [serdes.avro, serdes.json_schema])
def test_serdes_with_a_registry_take_its_address(make: Callable[..., object]) -> None:
    make(registry="mock://interface", schema={"type": "record", "name": "A", "fields": []})


# When something is wrong


@pytest.mark.parametrize("stage", ["deserialization", "processing", "production"])
def test_a_handler_fails_skips_writes_a_dead_letter_or_is_a_function(stage: str) -> None:
    for handler in ("fail", "skip", dead_letter("lost"), lambda context: "skip"):
        given: dict[str, Any] = {f"{stage}_handler": handler}
        App("a", **given)
    given = {f"{stage}_handler": "ignore"}
    with pytest.raises(ConfigError, match="ignore"):
        App("a", **given)


def test_a_dead_letter_tells_the_cause_the_stack_and_the_origin() -> None:
    app = App("a", processing_handler=dead_letter("lost"))
    app.stream("in", **TEXT).map_values(int, value=serdes.int64).to("out")
    with driven(app) as driver:
        driver.topic("in").pipe("k", "x")
        (letter,) = driver.dead_letters("lost")
        headers = dict(letter.headers)
        for name in ("exception", "stacktrace", "message", "topic", "partition", "offset"):
            assert headers[f"__streams.errors.{name}"], name


@pytest.mark.parametrize(
    "answer", ["replace_thread", "shutdown_client", "shutdown_application", lambda error: "x"]
)
def test_an_uncaught_exception_has_three_answers(answer: Any) -> None:
    assert App("a", uncaught_exception_handler=answer).config.uncaught_exception_handler == answer
