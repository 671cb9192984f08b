"""Test that the examples of docs/serdes.md do what they say, and that it names every serde."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streams import TopologyTestDriver, serdes
from tests.unit.streams.serdes.test_registry import needs_extra

PAGE = (Path(__file__).parents[3] / "docs" / "serdes.md").read_text()


def run(*, registry: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for extra, code in re.findall(r"```python( registry)?\n(.*?)```", PAGE, re.DOTALL):
        if registry or not extra:
            code = code.replace("http://localhost:8081", "mock://page")
            # `dont_inherit` keeps out this file's __future__: the page's classes are in no module.
            exec(compile(code, "serdes.md", "exec", dont_inherit=True), found)
    return found


def test_the_application_of_the_page() -> None:
    found = run(registry=False)
    order = found["Order"]("ann", [found["Line"]("tea", 450), found["Line"]("milk", 120)])
    with TopologyTestDriver(found["app"]) as driver:
        driver.topic("orders").pipe("o1", order)
        driver.topic("shouts").pipe(None, "tea")
        assert driver.topic("cents-by-order").read_table() == {"o1": 570}
        assert [record.value for record in driver.topic("louder").read_all()] == ["TEA"]


@needs_extra
def test_the_registry_of_the_page() -> None:
    payment = {"order": "o1", "cents": 570}
    found = run(registry=True)
    with TopologyTestDriver(found["app"]) as driver:
        driver.topic("payments").pipe("p1", payment)
        assert driver.topic("payments-again").read_table() == {"p1": payment}
    with TopologyTestDriver(found["accounting"]) as driver:
        driver.topic("refunds").pipe("p1", 570)
        assert driver.topic("refunds-again").read_table() == {"p1": 570}


@pytest.mark.parametrize("name", sorted({*serdes.__all__} - {"Field", "JsonSerde", "Serde"}))
def test_every_serde_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}\b", PAGE)
