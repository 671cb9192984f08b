"""Provide the fixture `millrace_broker` in every pytest run where Millrace is installed.

    def test_words_are_counted(millrace_broker):
        millrace_broker.create_topics({"lines": 4})
        Producer({"bootstrap.servers": millrace_broker.bootstrap_servers})

    @pytest.mark.millrace_broker(topics={"lines": 4}, settings={"log.cleaner.backoff.ms": 100})
    def test_lines_are_compacted(millrace_broker): ...

Each test gets a broker of its own, in this process and on a free port, whose data is deleted when
the test ends. Nothing of it is imported before a test requests it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from coordinator.embedded import EmbeddedBroker

_MARK = "millrace_broker"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARK}(topics, settings): the topics (name: partitions) that the broker of this test "
        "begins with, and its settings by Kafka's names",
    )


@pytest.fixture
def millrace_broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """Start an EmbeddedBroker for this test alone, with the topics and settings of its marks."""
    from coordinator.embedded import EmbeddedBroker

    options: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers(_MARK))):  # the closest mark last
        if mark.args or mark.kwargs.keys() - {"topics", "settings"}:
            raise pytest.UsageError(f"@pytest.mark.{_MARK} takes topics={{...}}, settings={{...}}")
        options |= mark.kwargs
    with EmbeddedBroker(**options) as broker:
        yield broker
