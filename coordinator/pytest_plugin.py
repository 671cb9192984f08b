"""A broker for a test: the fixture `millrace_broker`, there in every pytest that has Millrace.

    def test_words_are_counted(millrace_broker):
        millrace_broker.create_topics({"lines": 4})
        Producer({"bootstrap.servers": millrace_broker.bootstrap_servers})

    @pytest.mark.millrace_broker(topics={"lines": 4}, settings={"log.cleaner.backoff.ms": 100})
    def test_lines_are_compacted(millrace_broker): ...

Each test gets a broker of its own, in this process and on a free port, whose data is gone when the
test ends. Nothing of it is imported before a test asks for it.
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
    """A running EmbeddedBroker of this test's own; see its `bootstrap_servers`, `create_topics`."""
    from coordinator.embedded import EmbeddedBroker

    given: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers(_MARK))):  # the test's own says more
        if mark.args or mark.kwargs.keys() - {"topics", "settings"}:
            raise pytest.UsageError(f"@pytest.mark.{_MARK} takes topics={{...}}, settings={{...}}")
        given |= mark.kwargs
    with EmbeddedBroker(**given) as broker:
        yield broker
