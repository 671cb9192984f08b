"""Provide both brokers at once, with a JVM for each that runs Kafka's tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests import brokers
from tests.kafka.server import missing
from tests.tools.shell import Pair, Shell


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    """Start the embedded broker and real Kafka, each with nothing on it yet."""
    reason = missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    with ExitStack() as open_now:
        shells = []
        for kind in ("embedded", "kafka"):
            broker = brokers.make(kind)
            open_now.callback(broker.close)
            broker.start()
            shells.append(open_now.enter_context(Shell(broker.bootstrap_servers)))
        yield Pair(*shells)


@pytest.fixture
def same(pair: Pair) -> Callable[[str], str]:
    """Return a function that runs a command against both brokers and returns what both printed.

    It must be the same, but for what no two brokers have in common (see `normal`).
    """

    def run(command: str) -> str:
        ours, kafkas = pair.run(command)
        assert ours == kafkas, command
        return ours.text

    return run
