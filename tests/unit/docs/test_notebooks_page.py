"""Test that the cells of docs/notebooks.md run one after the other and show what they say."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.processes import wait_until
from tests.unit.docs.page_examples import read_blocks


@pytest.fixture
def _former_handler() -> Iterator[None]:
    """Take away the handler of SIGTERM that the page's `app.start()` sets for its process."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_former_handler")
def test_the_cells_run_one_after_the_other() -> None:
    cells = read_blocks("notebooks.md")
    driver_cell, describe_cell, broker_cell, produce_cell, store_cell, close_cell = cells
    found: dict[str, Any] = {}
    exec(driver_cell, found)
    counts = {"to": 2, "be": 2, "or": 1, "not": 1}
    assert dict(found["driver"].store("counts").all()) == counts
    exec(describe_cell, found)
    exec(broker_cell, found)
    try:
        exec(produce_cell, found)
        exec(store_cell, found)
        store = found["store"]
        wait_until(lambda: dict(store.all()) == counts, what=lambda: str(dict(store.all())))
    finally:
        exec(close_cell, found)
