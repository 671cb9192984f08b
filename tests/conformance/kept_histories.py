"""Judge random histories by the answers of Apache Kafka, which are kept in files.

A history is given by its seed and has a line for each call with its result. The lines that Kafka
4.4 gave for the first seeds are in `histories/`; `pytest --broker=kafka --keep-histories` writes
them anew. For other seeds the first broker of a run is what the next is compared with.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.brokers import Broker

DIRECTORY = Path(__file__).with_name("histories")
_FIRST: dict[tuple[str, int], list[str]] = {}


def judge_history(
    config: pytest.Config, broker: Broker, kind: str, seed: int, lines: list[str]
) -> None:
    """Fail at the first line that Kafka, or the broker before, answered otherwise."""
    path = DIRECTORY / f"{kind}-{seed}.json"
    if config.getoption("--keep-histories") and broker.kind == "kafka":
        DIRECTORY.mkdir(exist_ok=True)
        path.write_text(json.dumps(lines, indent=0) + "\n")
    if path.exists():
        expected = json.loads(path.read_text())
    else:
        expected = _FIRST.setdefault((kind, seed), lines)
    compare_histories(expected, lines, f"{kind}, {seed=} of {broker.kind}")


def compare_histories(expected: list[str], lines: list[str], what: str) -> None:
    """Fail at the first line that differs, with all lines before it, or where one has an end."""
    for step, (one, other) in enumerate(zip(expected, lines, strict=False)):
        before = "\n".join(lines[:step])
        assert other == one, f"{what} {step=}, after:\n{before}"
    assert len(lines) == len(expected), what
