"""Restore what a history changes in the process, so that later tests see the broker's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _the_logger_s_level_stays() -> Iterator[None]:
    levels = {name: logging.getLogger(name).level for name in ("coordinator", "streams")}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
