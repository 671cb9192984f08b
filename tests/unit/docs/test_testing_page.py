"""Test that the driver's examples in docs/testing.md are tests, and pass."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from pytest_millrace import topology_driver
from tests.unit.docs.page_examples import DOCS, find_blocks

SECTION = (
    (DOCS / "testing.md")
    .read_text()
    .partition("## `TopologyTestDriver`\n")[2]
    .partition("\n## ")[0]
)

__all__ = ["topology_driver"]  # This serves where the installed package lacks the fixture.


def defined() -> dict[str, Any]:
    """Run the code blocks of the section one after the other, and return what they define."""
    found: dict[str, Any] = {}
    for block in find_blocks(SECTION):
        exec(block, found)
    return found


EXAMPLES = {name: each for name, each in defined().items() if name.startswith("test_")}


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == SECTION.count("\ndef test_") > 4


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_passes(name: str, request: pytest.FixtureRequest) -> None:
    example = EXAMPLES[name]
    example(*(request.getfixturevalue(each) for each in inspect.signature(example).parameters))
