"""Test the pages on migration from other libraries, by running their Python examples."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import pytest

import streams
from streams import App, TopologyTestDriver
from streams.dsl.grouped import Grouped
from streams.dsl.stream import Stream
from streams.dsl.table import Table
from tests.unit.docs.page_examples import DOCS, read_blocks


def defined(block: str) -> dict[str, Any]:
    page = ModuleType("page_of_docs")  # The page's names are looked up in this module.
    sys.modules[page.__name__] = page
    exec(block, page.__dict__)
    return page.__dict__


PAGES = ["from-kafka-streams.md", "from-quix-and-faust.md"]
BLOCKS = [(name, number) for name in PAGES for number in range(len(read_blocks(name)))]


@pytest.mark.parametrize(("name", "number"), BLOCKS)
def test_every_application_of_the_pages_can_be_built(name: str, number: int) -> None:
    found = defined(read_blocks(name)[number])
    if "test_words_are_counted" not in found:
        assert found["app"].topology().subtopologies


def test_the_test_of_the_page_passes_on_the_application_of_the_page() -> None:
    application, *others = read_blocks(PAGES[0])
    (test,) = (block for block in others if "def test_words_are_counted" in block)
    defined(test)["test_words_are_counted"](defined(application)["app"])


def test_hot_minutes_are_counted_as_the_page_says() -> None:
    app: App = defined(read_blocks(PAGES[1])[0])["app"]
    with TopologyTestDriver(app, stores="memory") as driver:
        for second, celsius in ((0, 31), (10, 20), (20, 35), (70, 20), (71, 40)):
            reading = {"room": "kitchen", "celsius": celsius}
            driver.topic("readings").pipe("s1", reading, timestamp_ms=second * 1_000)
        assert driver.topic("hot-minutes").read_table() == {
            "kitchen": {"from_ms": 0, "readings": 2}
        }


def test_totals_are_summed_as_the_page_says() -> None:
    found = defined(read_blocks(PAGES[1])[1])
    with TopologyTestDriver(found["app"], stores="memory") as driver:
        for amount in (5, 7):
            driver.topic("orders").pipe("o", found["Order"]("a", amount), timestamp_ms=1)
        assert driver.store("totals").get("a") == 12


def names(page: str) -> set[str]:
    """Return the functions that are called in the last column of the page's tables."""
    rows = re.findall(r"^\|(.+)\|$", (DOCS / page).read_text(), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"(\w+)\(", row.split(" | ")[-1])}


@pytest.mark.parametrize("page", PAGES)
def test_what_the_tables_call_ours_is_there(page: str) -> None:
    places = [streams, streams.windows, streams.App, streams.Store, streams.ProcessorContext]
    places += [Stream, Table, Grouped]
    python = {"timedelta", "int"}
    for name in names(page) - python:
        assert any(hasattr(place, name) for place in places), f"{name}() is not ours"
