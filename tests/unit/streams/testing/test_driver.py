"""Test that the driver runs an application at once, with real tasks, stores and commits."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import pytest

from streams import (
    App,
    Processor,
    Record,
    Store,
    StoreUnavailable,
    StreamsError,
    TopologyTestDriver,
    serdes,
    windows,
)
from streams.errors import ConfigError
from streams.settings.exception_handlers import dead_letter
from tests.unit.streams.testing.apps import (
    build_counting_app,
    build_ticking_app,
    build_upper_app,
    build_word_count_app,
)


def test_the_word_count_of_the_interface() -> None:
    with TopologyTestDriver(build_word_count_app(), partitions={"lines": 4}, seed=7) as driver:
        driver.topic("lines").pipe("k", "to be or not to be", timestamp_ms=0)
        counts = {"to": 2, "be": 2, "or": 1, "not": 1}
        assert driver.topic("counts-by-word").read_table() == counts
        assert driver.store("counts").get("to") == 2
        assert dict(driver.store("counts").all()) == counts


def build_router(**settings: Any) -> App:
    app = App("router", **settings)
    app.stream("in", key=serdes.string, value=serdes.string).to(lambda record: record.value)
    return app


def test_a_chosen_topic_without_a_legal_name_is_refused() -> None:
    with TopologyTestDriver(build_router(production_handler="skip"), stores="memory") as driver:
        driver.topic("in").pipe_many([("k", "out"), ("k", "credit card"), ("k", "x" * 250)])
        assert driver.dropped == 2
        assert "credit card" not in driver.topics
        assert driver.topic("out").read_all()


def test_with_topics_given_a_chosen_one_that_is_not_among_them_is_refused() -> None:
    app = build_router(production_handler=dead_letter("lost"))
    with TopologyTestDriver(app, stores="memory", topics=["out"]) as driver:
        driver.topic("in").pipe_many([("k", "out"), ("k", "gone"), ("k", "out")])
        assert [letter.value for letter in driver.dead_letters("lost")] == [b"gone"]
        assert len(driver.topic("out").read_all()) == 2
        with pytest.raises(ConfigError, match="no topic 'gone'"):
            driver.topic("gone")
    refused = r"can't write in\[0\]@0: topic 'gone' does not exist"
    with (
        TopologyTestDriver(build_router(), stores="memory", topics=["out"]) as driver,
        pytest.raises(StreamsError, match=refused),
    ):
        driver.topic("in").pipe("k", "gone")


def test_with_topics_given_a_handler_may_name_no_other() -> None:
    app = build_router(production_handler=lambda failed: dead_letter("lost"))
    with (
        TopologyTestDriver(app, stores="memory", topics=[]) as driver,
        pytest.raises(StreamsError, match=r"dead-letter topic 'lost'.*does not exist"),
    ):
        driver.topic("in").pipe("k", "a b")


def test_records_go_through_the_internal_topics_of_a_broker() -> None:
    with TopologyTestDriver(build_word_count_app(), partitions={"lines": 2}) as driver:
        driver.topic("lines").pipe("k", "a b", timestamp_ms=5)
        repartition = next(t for t in driver.topics if t.endswith("-repartition"))
        assert driver.topic(repartition).read_pairs() == [("a", "a"), ("b", "b")]
        changelog = driver.topic("word-count-counts-changelog")
        assert sorted(changelog.read_pairs()) == [("a", 1), ("b", 1)]
        assert driver.stream_time_ms == 5


def test_each_record_is_committed_before_the_next() -> None:
    with TopologyTestDriver(build_counting_app()) as driver:
        driver.topic("in").pipe_many([("k", "x")] * 3)
        assert driver.topic("out").read_values() == [1, 2, 3]
        assert driver.metrics()["commits"] == 3


def test_between_two_commits_nothing_is_to_be_read_and_then_the_last_of_each_key() -> None:
    with TopologyTestDriver(build_counting_app(), commit="manual") as driver:
        driver.topic("in").pipe_many([("k", "x"), ("l", "x"), ("k", "x")])
        assert driver.topic("out").is_empty
        assert driver.store("c").get("k") is None
        driver.commit()
        assert sorted(driver.topic("out").read_pairs()) == [("k", 2), ("l", 1)]
        assert driver.store("c").get("k") == 2


def test_stream_time_punctuates_before_the_commit_and_wall_clock_time_when_it_is_told_to() -> None:
    with TopologyTestDriver(build_ticking_app(), start_ms=1_000) as driver:
        driver.topic("in").pipe("k", "v", timestamp_ms=25)
        assert driver.topic("out").read_pairs() == [("k", "v"), ("stream", "25")]
        assert driver.metrics()["commits"] == 1
        driver.advance_wall_clock(9)
        assert driver.topic("out").is_empty
        driver.advance_wall_clock(ms=26)
        assert driver.topic("out").read_pairs() == [("wall", "1035")]


def test_what_an_error_ends_is_rolled_back_and_a_restart_meets_it_again() -> None:
    app = App("failing")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.map_values(int, value=serdes.int64).to("out")
    with TopologyTestDriver(app) as driver:
        with pytest.raises(StreamsError, match=r"in\[0\]@0.*invalid literal"):
            driver.topic("in").pipe("k", "one")
        assert driver.topic("out").is_empty
        with pytest.raises(StreamsError, match=r"has stopped.*invalid literal.*restart"):
            driver.topic("in").pipe("k", "2")
        with pytest.raises(StreamsError, match="invalid literal"):
            driver.restart()


def test_what_an_error_has_ended_goes_on_after_a_restart_without_it() -> None:
    table = {"one": 1}
    app = App("failing")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.map_values(lambda word: table[word], value=serdes.int64).to("out")
    with TopologyTestDriver(app) as driver:
        with pytest.raises(StreamsError, match="two"):
            driver.topic("in").pipe("k", "two")
        table["two"] = 2
        driver.restart()
        driver.crash()
        driver.topic("in").pipe("k", "one")  # nobody processes it before the restart
        driver.restart()
        assert driver.topic("out").read_values() == [2, 1]


def test_a_handler_of_the_settings_makes_dead_letters() -> None:
    app = App("dead", processing_handler=dead_letter("lost"))
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.map_values(int, value=serdes.int64).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("k", "one"), ("k", "2")])
        assert driver.topic("out").read_values() == [2]
        (letter,) = driver.dead_letters("lost")
        assert (letter.key, letter.value) == (b"k", b"one")
        assert ("__streams.errors.topic", b"in") in letter.headers
        assert driver.dead_letters("lost") == []
        assert driver.dropped == 1


def test_a_handler_may_be_a_function_that_names_any_topic() -> None:
    app = App("dead", processing_handler=lambda failed: dead_letter(f"lost-{failed.topic}"))
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.map_values(int, value=serdes.int64).to("out")
    with TopologyTestDriver(app) as driver:
        assert driver.dead_letters("lost-in") == []
        driver.topic("in").pipe("k", "one")
        assert [letter.value for letter in driver.dead_letters("lost-in")] == [b"one"]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_every_guarantee_commits(guarantee: str) -> None:
    with TopologyTestDriver(build_counting_app(processing_guarantee=guarantee)) as driver:
        driver.topic("in").pipe_many([("k", "x")] * 2)
        driver.restart()
        driver.topic("in").pipe("k", "x")
        assert driver.topic("out").read_values() == [1, 2, 3]


def test_a_ledger_names_what_each_transaction_wrote() -> None:
    with TopologyTestDriver(build_counting_app(ledger=True)) as driver:
        driver.topic("in").pipe("k", "x")
        (entry,) = driver.topic("counting-ledger").read_values()
        assert b'"out":{"0":[[0,0]]}' in entry


def test_a_store_without_a_changelog_is_read_too() -> None:
    store = Store.in_memory("c", logged=False)
    with TopologyTestDriver(build_counting_app(store)) as driver:
        driver.topic("in").pipe("k", "x")
        assert driver.store("c").get("k") == 1


def test_what_comes_after_its_window_has_closed_is_shown() -> None:
    app = App("late")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by_key().windowed_by(windows.tumbling(10, grace=0)).count(store="c")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("k", "in time", 5), ("k", "next", 12), ("k", "late", 7)])
        (record,) = driver.late
        assert (record.value, record.window_start_ms, record.stream_time_ms) == ("late", 0, 12)
        assert driver.dropped == driver.metrics()["late"] == 1
        assert [value for _, value in driver.store("c").fetch("k", 0, 20)] == [1]


def test_headers_and_timestamps_go_through() -> None:
    with TopologyTestDriver(build_upper_app()) as driver:
        driver.topic("in").pipe("k", "v", timestamp_ms=9, headers=[("trace", b"1")])
        assert driver.topic("out").read() == Record("k", "V", 9, [("trace", b"1")])


def test_text_in_headers_is_read_as_the_bytes_that_a_broker_delivers() -> None:
    seen: list[Any] = []

    class Adding(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            seen.append(record.headers)
            added: Any = [*record.headers, ("by", "größe"), ("none", None)]
            self.context.forward(record.with_headers(added))

    app = App("a")
    both: Any = {"key": serdes.string, "value": serdes.string}
    stream = app.stream("in", **both).process(Adding, **both).repartition(**both)
    stream.process(Adding, **both).to("out")
    text: Any = {"trace": "1"}
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "v", headers=text)
        piped, added = ("trace", b"1"), (("by", "größe".encode()), ("none", None))
        assert seen == [(piped,), (piped, *added)]
        assert driver.topic("out").read().headers == (piped, *added, *added)


def test_a_header_that_a_producer_would_refuse_is_not_piped() -> None:
    number: Any = {"count": 1}
    with (
        TopologyTestDriver(build_upper_app()) as driver,
        pytest.raises(TypeError, match=r"header value to be None, binary, or unicode .* not int"),
    ):
        driver.topic("in").pipe("k", "v", headers=number)


def test_state_on_disk_is_gone_with_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with TopologyTestDriver(build_counting_app()) as driver:
        driver.topic("in").pipe("k", "x")
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
    with TopologyTestDriver(build_upper_app()):
        assert not list(tmp_path.iterdir()), "no store needs a disk"


def test_with_stores_in_memory_it_is_ready_sooner_than_with_stores_on_disk() -> None:
    app = build_word_count_app()

    def once(stores: Literal["declared", "memory"]) -> float:
        begin = time.process_time()
        with TopologyTestDriver(app, partitions={"lines": 4}, stores=stores):
            return time.process_time() - begin

    in_memory, on_disk = (min(once(stores) for _ in range(3)) for stores in ("memory", "declared"))
    assert in_memory * 2 < on_disk


def test_wrong_use_is_told_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"'line': 2.*there are \['counts-by-word', 'lines'\]"):
        TopologyTestDriver(build_word_count_app(), partitions={"line": 2})
    with pytest.raises(ValueError, match="0 partitions"):
        TopologyTestDriver(build_word_count_app(), partitions={"lines": 0})
    driver = TopologyTestDriver(build_word_count_app())
    with pytest.raises(ConfigError, match=r"no topic 'line'; there are \['counts-by-word', "):
        driver.topic("line")
    with pytest.raises(ConfigError, match="no topic 'lost'"):
        driver.dead_letters("lost")
    with pytest.raises(ConfigError, match=r"no store 'count'; there are \['counts'\]"):
        driver.store("count")
    with pytest.raises(ConfigError, match=r"no step reads topic 'counts-by-word': pipe to one of"):
        driver.topic("counts-by-word").pipe("k", 1)
    lines, view = driver.topic("lines"), driver.store("counts")
    driver.crash()
    with pytest.raises(StoreUnavailable, match=r"has crashed: driver\.restart\(\)"):
        driver.store("counts").get("k")
    driver.close()
    driver.close()
    with pytest.raises(RuntimeError, match="closed"):
        lines.pipe("k", "v")
    for act in (driver.commit, driver.crash, driver.restart, view.all):
        with pytest.raises(RuntimeError, match="closed"):
            act()


@pytest.mark.parametrize("by_source", [True, False])
def test_an_input_that_needs_a_committed_offset_begins_at_its_first_record(by_source: bool) -> None:
    """Nobody could have committed one: Kafka Streams' driver takes records for it, too."""
    app = App("app", auto_offset_reset="earliest" if by_source else "none")
    lines = app.stream(
        "in", key=serdes.string, value=serdes.string, offset_reset="none" if by_source else None
    )
    lines.to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "one")
        driver.restart()
        driver.topic("in").pipe("k", "two")
        assert driver.topic("out").read_pairs() == [("k", "one"), ("k", "two")]
