"""Test that the examples of the pages in docs/ and of examples/ do what they say."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

import streams
from examples import dedupe
from streams import App, AuthorizationError, BrokerUnavailable, StreamsError
from streams.commands.plan_printing import print_plan
from streams.processes.lifecycle import TRANSITIONS, LifecycleState
from streams.runtime.assigning.leftover_stores import format_leftover_warning
from streams.settings.uncaught_exceptions import UncaughtExceptionResponse, call_uncaught_handler
from streams.topology.compare_versions import compare_topologies
from streams.topology.description import describe_topology
from tests.unit.docs.page_examples import DOCS, read_blocks, run_examples
from tests.unit.streams.bound import BoundTask

IMPORT = re.compile(r"from (?:millrace|streams) import (?:(\w.*)|\(([^)]*)\))")
HOUR_MS = 3_600_000


@pytest.mark.parametrize(("page", "count"), [("joins.md", 5), ("tables.md", 5), ("windows.md", 6)])
def test_the_examples_of_a_page_hold_one_after_the_other(page: str, count: int) -> None:
    assert len(read_blocks(page)) == count
    run_examples(page)


@pytest.mark.parametrize(
    "app", [dedupe.app, run_examples("processors.md")["app"]], ids=["example", "page"]
)
def test_dedupe_forwards_each_event_once_an_hour(app: App) -> None:
    task = BoundTask(app)
    for key, timestamp_ms in (("a", 0), ("b", 1), ("a", 2)):
        task.pipe(key, "event", timestamp_ms)
    assert [key for key, _ in task.pairs] == [b"a", b"b"]
    # Stream time leaps: a record an hour later passes, though no key has been removed yet.
    task.pipe("a", "event", HOUR_MS + 1)
    task.pipe("b", "event", HOUR_MS + 1)
    assert [key for key, _ in task.pairs] == [b"a", b"b", b"a"]
    task.punctuate(HOUR_MS + 2)
    assert [key for key, _ in task.stores["seen"].all()] == ["a"]


def test_the_aggregations_of_the_page() -> None:
    task = BoundTask(run_examples("processors.md")["app"], number=1)
    for value in ("home", "basket", "about"):
        task.pipe("u", value)
    task.flush()
    assert {name: store.get("u") for name, store in task.stores.items()} == {
        "clicks-by-user": 3,
        "last-page": "home",
        "pages": ["home", "basket", "about"],
    }
    assert task.pairs == [(b"u", b'["home","basket","about"]')]


def test_the_handlers_of_the_page_and_how_to_try_again() -> None:
    found = run_examples("errors.md")
    orders = found["app"]
    task = BoundTask(orders, **orders.config.handlers._asdict())
    task.topics.add("orders-dead")
    task.pipe("k", "12")
    task.pipe("k", "twelve")
    task.pipe("k", str(2**80))
    assert [topic for topic, *_ in task.produced] == ["amounts", "orders-dead", "orders-dead"]
    (_, key, value, _, headers) = task.produced[1]
    again = BoundTask(found["again"])
    again.pipe(key.decode(), value.decode(), timestamp_ms=42, headers=headers)
    marked = [("trace", b"1"), ("run-again-1", b"1")]
    assert again.produced == [("orders", b"k", b"twelve", 42, marked)]
    task.pipe("k", "twelve", headers=marked)  # it fails again
    (topic, *_, headers) = task.produced[-1]
    assert topic == "orders-dead"
    again.pipe("k", "twelve", headers=headers)
    again.pipe("k", "of another input", headers=[("__streams.errors.topic", b"prices")])
    again.pipe("k", "of a timer", headers=[("__streams.errors.offset", b"-1")])
    assert len(again.produced) == 1
    with pytest.raises(StreamsError, match="TypeError"):
        task.pipe("k", None)


def test_the_description_and_the_plan_of_the_page() -> None:
    first, second = read_blocks("topology.md")
    found: dict[str, Any] = {}
    exec(first, found)
    old = found["app"]
    exec(second, found)
    out = io.StringIO()
    plan = compare_topologies(
        describe_topology(old.topology()), describe_topology(found["app"].topology()), {"pages": 4}
    )
    print_plan(plan, Console(file=out))
    text, planned, apart, renamed = read_blocks("topology.md", "text")
    assert old.describe().startswith(text)
    lines = out.getvalue().splitlines()
    assert planned.splitlines() == [*lines[:4], "...", *lines[-5:-2], "..."]
    before = describe_topology(found["app"].topology())
    found["seen"].to_table(store="last")
    out = io.StringIO()
    print_plan(
        compare_topologies(before, describe_topology(found["app"].topology())), Console(file=out)
    )
    assert out.getvalue().endswith(apart)
    told = format_leftover_warning(["per-user"], ["changelog 'visits-by-user-changelog'"])
    assert told.startswith(renamed.removesuffix(" ...\n"))


def run_block(block: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(block, found)
    return found


def test_the_states_of_the_page_are_those_of_an_application() -> None:
    page = (DOCS / "operations.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \|[^|]*\| ([^|]*) \|$", page, re.MULTILINE)
    found = {state: set(re.findall("[A-Z_]+", following)) for state, following in rows}
    assert found == {str(state): set(map(str, then)) for state, then in TRANSITIONS.items()}


def test_the_listener_and_the_handler_of_the_page() -> None:
    listening, handling = map(run_block, read_blocks("operations.md")[1:])
    for before, state, is_ready in (
        (LifecycleState.CREATED, LifecycleState.REBALANCING, False),
        (LifecycleState.REBALANCING, LifecycleState.RUNNING, True),
        (LifecycleState.RUNNING, LifecycleState.PENDING_SHUTDOWN, False),
    ):
        listening["note_state"](state, before)
        assert listening["ready"].is_set() is is_ready
    handler = handling["app"].config.uncaught_exception_handler
    answers = {
        call_uncaught_handler(handler, error)
        for error in (
            BrokerUnavailable("no broker"),
            AuthorizationError("Write", "topic", "copy"),
            StreamsError("full"),
        )
    }
    assert answers == set(UncaughtExceptionResponse)


@pytest.mark.parametrize("name", sorted(path.name for path in DOCS.glob("*.md")))
def test_every_name_that_a_page_imports_is_public(name: str) -> None:
    for block in read_blocks(name):
        for one, several in IMPORT.findall(block):
            names = re.findall(r"\w+", one.partition("#")[0] or several)
            assert names
            assert set(names) <= set(streams.__all__)


def test_no_page_installs_millrace_by_its_name_alone() -> None:
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    installs = [line for path in pages for line in re.findall(r"pip install .*", path.read_text())]
    assert any("../millrace" in line for line in installs)
    assert not [line for line in installs if re.search(r"[ ']millrace(?:-streams)?\b", line)]
