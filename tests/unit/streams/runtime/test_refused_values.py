"""Test that a value which a store's serde refuses is traced to its record and given to the handler.

Stores serialise at the commit. The driver commits only on request, so that several records write
between two commits, and a refusal has to be traced to one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import (
    App,
    ErrorContext,
    Processor,
    Record,
    Store,
    StreamsError,
    Windowed,
    dead_letter,
    serdes,
    windows,
)
from streams.runtime.tasks.early_serialization import QUIET_MS
from streams.runtime.threads.commit import CommitStep
from streams.testing import TopologyTestDriver

BOTH: Any = {"key": serdes.string, "value": serdes.string}
POISON = "poison"


def refusing(value: Any) -> bytes:
    """Serialise text and lists of text, and refuse poison."""
    if value == POISON or (isinstance(value, list) and POISON in value):
        raise ValueError("too strong")
    return serdes.json.serialize(value)


TEXT: Any = serdes.of(refusing, serdes.json.deserialize, name="text")
TEXT_IN: Any = serdes.of(lambda value: refusing(value)[1:-1], bytes.decode, name="text in")
"""Reads any text but writes no poison, so that a table's store refuses what its source read."""


def last(key: Any, value: Any, so_far: Any) -> Any:
    return value


def gathered(key: Any, value: Any, so_far: list[Any]) -> list[Any]:
    so_far.append(value)
    return so_far


class Putting(Processor[str, str, str, str]):
    def init(self, context: Any) -> None:
        super().init(context)
        self.store = context.store("s")

    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, record.value)


class PuttingWindows(Putting):
    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, record.value, record.timestamp_ms)


class PuttingSessions(Putting):
    def process(self, record: Record[str, str]) -> None:
        self.store.put(Windowed(record.key, 0, record.timestamp_ms), record.value)


class ChangingInPlace(Putting):
    """Puts a list once and later changes it in place, without another put."""

    def process(self, record: Record[str, str]) -> None:
        found = self.store.get(record.key)
        if found is None:
            self.store.put(record.key, [record.value])
        else:
            found.append(record.value)


def processor(kind: Callable[[], Any], store: Store) -> Callable[[App], None]:
    def build(app: App) -> None:
        app.add_store(store)
        app.stream("in", **BOTH).process(kind, stores=["s"], name="bad", **BOTH)

    return build


def grouped(app: App) -> Any:
    return app.stream("in", **BOTH).group_by_key()


def on(kind: Any, **more: Any) -> Callable[[App], Any]:
    return lambda app: grouped(app).windowed_by(kind).aggregate(list, gathered, value=TEXT, **more)


def store(**more: Any) -> Store:
    return Store.persistent("s", **more)


TOPOLOGIES: dict[str, Callable[[App], Any]] = {
    "aggregate": lambda app: grouped(app).aggregate(list, gathered, value=TEXT, store=store()),
    "aggregate, not cached": lambda app: grouped(app).aggregate(
        list, gathered, value=TEXT, store=store(caching=False)
    ),
    "aggregate, with steps behind": lambda app: (
        grouped(app)
        .aggregate(list, gathered, value=TEXT, store=store(caching=False))
        .map_values(len, value=serdes.int64)
        .to_stream()
        .to("out")
    ),
    "aggregate, written to a topic": lambda app: (
        grouped(app)
        .aggregate(list, gathered, value=TEXT, store=store())
        .to_stream()
        .to("out", value=TEXT)
    ),
    "aggregate of text": lambda app: grouped(app).aggregate(
        lambda: None, last, value=TEXT, store=store()
    ),
    "in memory": lambda app: grouped(app).aggregate(
        list, gathered, value=TEXT, store=Store.in_memory("s")
    ),
    "without a changelog": lambda app: grouped(app).aggregate(
        list, gathered, value=TEXT, store=store(logged=False)
    ),
    "with a ttl": lambda app: grouped(app).aggregate(
        list, gathered, value=TEXT, store=store(ttl=1_000)
    ),
    "versioned": lambda app: grouped(app).aggregate(
        lambda: None, last, value=TEXT, store=Store.versioned("s", history=1_000)
    ),
    "reduce": lambda app: grouped(app).reduce(lambda old, new: new, store=store(value=TEXT)),
    "table": lambda app: app.table("in", key=serdes.string, value=TEXT_IN, store=store()),
    "to_table": lambda app: app.stream("in", **BOTH).to_table(store=store(value=TEXT)),
    "map_values of a table": lambda app: app.table("in", **BOTH).map_values(
        lambda value: [value], value=TEXT, store=store(caching=False)
    ),
    "tumbling windows": on(windows.tumbling(1_000), store="s"),
    "hopping windows": on(windows.hopping(1_000, advance=500), store="s"),
    "windows as they close": on(windows.tumbling(1_000), store="s", emit="on_close"),
    "sliding windows": on(windows.sliding(100), store="s"),
    "sessions": on(windows.session(100), store="s", merger=lambda k, one, other: one + other),
    "processor": processor(Putting, store(value=TEXT, key=serdes.string)),
    "processor, windows": processor(
        PuttingWindows,
        Store.window("s", size=10, retention=1_000, key=serdes.string, value=TEXT),
    ),
    "processor, all of a window": processor(
        PuttingWindows,
        Store.window(
            "s", size=10, retention=1_000, retain_duplicates=True, key=serdes.string, value=TEXT
        ),
    ),
    "processor, sessions": processor(
        PuttingSessions, Store.session("s", retention=1_000, key=serdes.string, value=TEXT)
    ),
    "processor, versions": processor(
        Putting, Store.versioned("s", history=1_000, key=serdes.string, value=TEXT)
    ),
    "processor, changed in place": processor(ChangingInPlace, store(value=TEXT, key=serdes.string)),
}


def driven(build: Callable[[App], Any], **settings: Any) -> TopologyTestDriver:
    app = App("refusing", **settings)
    build(app)
    return TopologyTestDriver(app, commit="manual")


def pipe(driver: TopologyTestDriver, *values: str, from_ms: int = 0) -> None:
    topic = driver.topic("in", key=serdes.string, value=serdes.string)
    for number, value in enumerate(values):
        topic.pipe("k", value, timestamp_ms=from_ms + number)


def contents(driver: TopologyTestDriver) -> Any:
    """Return the contents of the store; after a restart these come from its changelog."""
    view: Any = driver.store("s")
    if hasattr(view, "all"):
        return list(view.all())
    return view.get("k").value


def without_poison(build: Callable[[App], Any]) -> Any:
    with driven(build) as driver:
        pipe(driver, "a")
        driver.topic("in", key=serdes.string, value=serdes.string).pipe("k", "b", timestamp_ms=2)
        driver.commit()
        return contents(driver)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_record_whose_value_a_store_refuses_is_a_dead_letter_and_the_others_count(
    name: str,
) -> None:
    settings: Any = {"processing_handler": dead_letter("dead")}
    with driven(TOPOLOGIES[name], **settings) as driver:
        pipe(driver, "a", POISON, "b")
        driver.commit()
        (letter,) = driver.dead_letters("dead")
        headers = dict(letter.headers)
        assert (letter.key, letter.value) == (b"k", POISON.encode())
        assert headers["__streams.errors.offset"] == b"1"
        assert b"too strong" in (headers["__streams.errors.message"] or b"")
        assert contents(driver) == without_poison(TOPOLOGIES[name])
        driver.crash()
        driver.restart()
        assert contents(driver) == without_poison(TOPOLOGIES[name])
        assert not driver.dead_letters("dead")


@pytest.mark.parametrize("name", ["aggregate", "table", "sessions", "processor"])
def test_where_each_record_is_committed_the_same_record_is_a_dead_letter(name: str) -> None:
    app = App("refusing", processing_handler=dead_letter("dead"))
    TOPOLOGIES[name](app)
    with TopologyTestDriver(app) as driver:
        pipe(driver, "a", POISON, "b")
        assert [letter.value for letter in driver.dead_letters("dead")] == [POISON.encode()]
        assert contents(driver) == without_poison(TOPOLOGIES[name])


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_without_a_handler_the_application_ends_with_a_message_that_names_the_record(
    name: str, guarantee: str
) -> None:
    message = (
        r"step '.+' can't process in\[0\]@1: store 's' can't take value .*poison.* "
        r"\((str|list)\): too strong"
    )
    with driven(TOPOLOGIES[name], processing_guarantee=guarantee) as driver:
        with pytest.raises(StreamsError, match=message):
            piped_and_committed(driver)
        with pytest.raises(StreamsError, match=message):
            restarted_and_committed(driver)
        assert not driver.is_running


def piped_and_committed(driver: TopologyTestDriver) -> None:
    """Pipe a poison value between two others and commit: the put or the commit is refused."""
    pipe(driver, "a", POISON, "b")
    driver.commit()


def restarted_and_committed(driver: TopologyTestDriver) -> None:
    driver.restart()
    driver.commit()


GATHERED = TOPOLOGIES["aggregate"]
IN_STORE = [("k", ["a", "b"])]


def test_a_refusal_at_the_commit_is_counted_and_repeated_once() -> None:
    with driven(GATHERED, processing_handler="skip") as driver:
        pipe(driver, "a", POISON, "b")
        driver.commit()
        assert contents(driver) == IN_STORE
        assert driver.metrics()["values_refused"] == 1
        assert driver.dropped == 1
        pipe(driver, POISON, "c", from_ms=10)
        driver.commit()
        assert contents(driver) == [("k", ["a", "b", "c"])]
        assert driver.metrics()["values_refused"] == 1, "it still serialises early"


def test_after_a_quiet_time_values_are_serialised_at_the_commit_again() -> None:
    with driven(GATHERED, processing_handler="skip") as driver:
        pipe(driver, "a", POISON)
        driver.commit()
        (task,) = driver._readable_tasks()
        for number in range(2):
            assert task.early_serialization.is_on
            driver.advance_wall_clock(QUIET_MS // 2)
            pipe(driver, str(number), from_ms=10 + number)
            driver.commit()
        assert not task.early_serialization.is_on
        pipe(driver, POISON, "b", from_ms=20)
        driver.commit()
        assert driver.metrics()["values_refused"] == 2
        assert contents(driver) == [("k", ["a", "0", "1", "b"])]


def test_a_handler_is_told_the_step_the_record_and_the_value() -> None:
    asked: list[ErrorContext] = []

    def ask(where: ErrorContext) -> Any:
        asked.append(where)
        return "skip"

    with driven(GATHERED, processing_handler=ask) as driver:
        pipe(driver, "a", POISON, "b")
        driver.commit()
    (where,) = asked
    assert (where.topic, where.partition, where.offset) == ("in", 0, 1)
    assert (where.key, where.value, where.source_value) == ("k", POISON, POISON.encode())
    assert where.stage == "processing"
    assert where.step.startswith("KSTREAM-AGGREGATE")
    assert "store 's' can't take value ['a', 'poison'] (list): too strong" in str(where.error)


@pytest.mark.parametrize("step", CommitStep)
def test_a_crash_at_any_step_of_a_commit_comes_to_the_same(step: CommitStep) -> None:
    with driven(GATHERED, processing_handler=dead_letter("dead")) as driver:
        pipe(driver, "a")
        driver.commit()
        if step is CommitStep.RESTORING:
            driver.crash()
        driver.crash(step)
        pipe(driver, POISON, "b", from_ms=1)
        if driver.is_running:
            driver.commit()
        for _ in range(3):
            if not driver.is_running:
                driver.restart()
                driver.commit() if driver.is_running else None
        assert contents(driver) == IN_STORE
        assert [letter.value for letter in driver.dead_letters("dead")] == [POISON.encode()]


class Punctuating(Putting):
    """Puts poison at each punctuation, and counts how often it was refused."""

    refused = 0

    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(3 * QUIET_MS, self.punctuate, clock="wall")

    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, [record.value])

    def punctuate(self, now_ms: int) -> None:
        self.store.put("from a punctuation", [POISON])


@pytest.mark.parametrize("handler", ["fail", "skip"])
def test_what_a_punctuation_writes_is_refused_where_it_is_written(handler: str) -> None:
    build = processor(Punctuating, store(key=serdes.string, value=TEXT))
    with driven(build, processing_handler=handler) as driver:
        pipe(driver, "a")
        driver.advance_wall_clock(3 * QUIET_MS)
        driver.commit()  # Its writes are rolled back; it is due again an interval later.
        assert driver.metrics()["values_refused"] == 1
        message = "can't process a punctuation: store 's' can't take value"
        if handler == "fail":
            with pytest.raises(StreamsError, match=message):
                driver.advance_wall_clock(3 * QUIET_MS)
            return
        for count in range(1, 4):
            driver.advance_wall_clock(2 * QUIET_MS)
            pipe(driver, "a", from_ms=count)
            driver.commit()  # A quiet time has passed without a refusal.
            driver.advance_wall_clock(QUIET_MS)
            driver.commit()
            assert driver.dropped == count, "each is refused at once from now on"
        assert contents(driver) == [("k", ["a"])]
        assert driver.metrics()["values_refused"] == 1


class Catching(Putting):
    def process(self, record: Record[str, str]) -> None:
        try:
            self.store.put(record.key, [record.value])
        except Exception:
            self.store.put(record.key, ["caught"])


def test_a_processor_may_catch_what_its_store_refuses() -> None:
    build = processor(Catching, store(key=serdes.string, value=TEXT))
    with driven(build) as driver:
        pipe(driver, "a", POISON)
        driver.commit()
        assert contents(driver) == [("k", ["caught"])]


class Replacing(Putting):
    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, [record.value])


def test_a_value_that_is_replaced_before_the_commit_is_refused_all_the_same() -> None:
    build = processor(Replacing, store(key=serdes.string, value=TEXT))
    with driven(build, processing_handler=dead_letter("dead")) as driver:
        pipe(driver, "a", POISON, "b")
        driver.commit()
        assert [letter.value for letter in driver.dead_letters("dead")] == [POISON.encode()]
        assert contents(driver) == [("k", ["b"])]


def outer_joined(app: App) -> None:
    left, right = app.stream("in", **BOTH), app.stream("other", **BOTH)
    kinds: Any = {"this_value": TEXT, "other_value": TEXT}
    left.outer_join(
        right,
        lambda one, other: f"{one}-{other}",
        within=100,
        grace=0,
        value=serdes.string,
        **kinds,
    ).to("out")


def test_a_join_of_streams_keeps_the_others_and_skips_what_its_stores_refuse() -> None:
    with driven(outer_joined, processing_handler=dead_letter("dead")) as driver:
        pipe(driver, "a", POISON, "b")
        driver.commit()
        other = driver.topic("other", key=serdes.string, value=serdes.string)
        other.pipe("k", "x", timestamp_ms=50)
        driver.commit()
        joined = driver.topic("out", key=serdes.string, value=serdes.string).read_values()
        assert joined == ["a-x", "b-x"]
        assert {letter.value for letter in driver.dead_letters("dead")} == {POISON.encode()}


@pytest.mark.parametrize("name", ["tumbling windows", "sessions", "aggregate", "processor"])
def test_at_least_once_nothing_refused_is_in_a_changelog(name: str) -> None:
    settings: Any = {"processing_handler": "skip", "processing_guarantee": "at_least_once"}
    with driven(TOPOLOGIES[name], **settings) as driver:
        pipe(driver, "a", POISON, "b")
        driver.commit()
        changelog = driver.topic("refusing-s-changelog", key=serdes.bytes, value=serdes.bytes)
        values = [value for value in changelog.read_values() if value is not None]
        assert values
        assert not any(POISON.encode() in value for value in values)
        assert contents(driver) == without_poison(TOPOLOGIES[name])
