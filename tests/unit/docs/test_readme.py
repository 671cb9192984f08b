"""Test that the applications of README.md run, and that its tables name all pages and examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from streams import TopologyTestDriver
from tests.unit.docs.page_examples import find_blocks

HOME = Path(__file__).parents[3]
README = (HOME / "README.md").read_text()
WORD_COUNT, OPERATORS = find_blocks(README)


def test_the_first_application_counts_words() -> None:
    found: dict[str, Any] = {"__name__": "readme"}
    exec(WORD_COUNT, found)
    with TopologyTestDriver(found["app"], stores="memory") as driver:
        driver.topic("lines").pipe("k", "to be or not to be")
        counts = {"to": 2, "be": 2, "or": 1, "not": 1}
        assert driver.topic("counts-by-word").read_table() == counts


def test_the_example_of_operators_holds() -> None:
    exec(OPERATORS, {})


def test_every_page_is_led_to() -> None:
    pages = {path.name for path in (HOME / "docs").glob("*.md")} - {"index.md"}
    index = (HOME / "docs" / "index.md").read_text()
    assert pages <= set(re.findall(r"\]\(([^)#]+)", index))
    assert "(docs/index.md)" in README


def test_every_example_has_its_command() -> None:
    examples = {path.stem for path in (HOME / "examples" / "data").glob("*.py")}
    examples -= {"__init__", "inputs"}
    assert set(re.findall(r"^\|.*millrace run examples\.(\w+):app", README, re.M)) == examples
    page = (HOME / "docs" / "examples.md").read_text()
    assert set(re.findall(r"^\| \[(\w+)\]", page, re.M)) == examples


def test_every_operator_that_it_names_is_there() -> None:
    from streams.dsl.grouped import Grouped
    from streams.dsl.stream import Stream
    from streams.dsl.table import Table

    for of, kind in (("streams", Stream), ("groups", Grouped), ("tables", Table)):
        (row,) = re.findall(rf"^\| {of} \| `([^`]+)`", README, re.M)
        public = {name for name in dir(kind) if name[0] != "_"}
        assert set(row.split()) == public
