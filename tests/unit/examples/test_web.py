"""Test what the routes of the API with FastAPI read, and that the pages say how to run it.

FastAPI is not installed with Millrace: the routes themselves are read as text here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from examples.web.counts_of_words import (
    AgedCountOfWord,
    CountOfWord,
    list_counts,
    read_count,
)
from examples.word_count import app
from streams import RoutedStore, StoreUnavailable, serdes
from streams.graph.nodes import StoreKind
from streams.queries.routed_store import PAGE_ROWS
from streams.queries.store_reads import StoreRow
from tests.unit.streams.queries.served import FakeReads, declare_store, refuse_after

ROOT = Path(__file__).parents[3]
API = (ROOT / "examples" / "web" / "api.py").read_text()
QUERIES, EXAMPLES = ((ROOT / "docs" / f"{page}.md").read_text() for page in ("queries", "examples"))


def create_reads(**counts: int) -> Any:
    spec = declare_store("counts", serdes.string, serdes.int64, StoreKind.KEY_VALUE)
    rows = [StoreRow(word, count) for word, count in counts.items()]
    return FakeReads({"counts": spec}, {"counts": rows})


def open_counts(reads: Any) -> RoutedStore[str, int]:
    return RoutedStore(reads, "counts", 2.0)


def test_a_word_has_its_count_and_one_that_never_occurred_has_0() -> None:
    counts = open_counts(create_reads(to=2))
    assert read_count(counts, "to") == AgedCountOfWord("to", 2, 0.25)
    assert read_count(counts, "be") == AgedCountOfWord("be", 0, 0.25)


def test_a_count_that_can_not_be_known_is_an_error_and_not_0() -> None:
    reads = create_reads(to=2)
    reads.before_read = refuse_after(0)
    with pytest.raises(StoreUnavailable):
        read_count(open_counts(reads), "be")
    with pytest.raises(StoreUnavailable):
        list_counts(open_counts(reads), "b", 20)


def test_words_with_a_prefix_are_listed_in_order_up_to_the_limit() -> None:
    counts = open_counts(create_reads(tz=1, be=2, to=3, t=4, tö=5, u=6))
    found = [CountOfWord(*each) for each in (("t", 4), ("to", 3), ("tz", 1), ("tö", 5))]
    assert list_counts(counts, "t", 20) == found
    assert list_counts(counts, "t", 2) == found[:2]
    assert list_counts(counts, "x", 20) == []


def test_no_more_is_fetched_than_the_limit_needs() -> None:
    reads = create_reads(**{f"w{number:05}": number for number in range(3 * PAGE_ROWS)})
    assert len(list_counts(open_counts(reads), "w", 20)) == 20
    assert len(reads.reads) == 1
    assert len(list_counts(open_counts(reads), "w", PAGE_ROWS + 1)) == PAGE_ROWS + 1
    assert len(reads.reads) == 3


def test_the_store_that_the_api_opens_is_one_of_the_application() -> None:
    [store] = re.findall(r'running\.query\(\s*"(.+?)"', API)
    names = {each.name for sub in app.topology().subtopologies for each in sub.stores}
    assert store in names


def test_both_pages_run_it_by_the_commands_of_its_docstring_and_call_routes_that_it_has() -> None:
    docstring = ast.get_docstring(ast.parse(API)) or ""
    installs, starts, _ = re.findall(r"^    (.+)", docstring, re.MULTILINE)
    for page in (QUERIES, EXAMPLES):
        assert f"\n{installs}" in page
        assert f"\n{starts}" in page
    routes = [re.sub(r"\{.+?\}", ".+", each) for each in re.findall(r'@api\.get\("(.+?)"', API)]
    called = re.findall(r"localhost:8000(/[^\s'?]*)", docstring + QUERIES + EXAMPLES)
    assert len(called) > 2
    assert [each for each in called if not any(re.fullmatch(route, each) for route in routes)] == []
