"""Provide both brokers at once, with a JVM for each that runs Kafka's tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests import brokers
from tests.kafka.server import missing
from tests.tools.shell import Pair, Shell

_PUBLISHED_WITHIN_S = 60.0


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

    It must be the same, but for what no two brokers have in common (see `normal`). What only looks
    is run until it is: Kafka's controller answers as soon as a change is in its log, which the
    broker has yet to read.
    """

    def run(command: str) -> str:
        deadline = time.monotonic() + _PUBLISHED_WITHIN_S
        ours, kafkas = pair.run(command)
        while ours != kafkas and "--describe" in command and time.monotonic() < deadline:
            ours, kafkas = pair.run(command)
        assert ours == kafkas, command
        return ours.text

    return run
