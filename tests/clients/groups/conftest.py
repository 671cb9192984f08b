"""Provide the history that all tests of groups look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import brokers
from tests.brokers import Broker
from tests.clients.groups.history import History
from tests.sampling import draw_seed


@pytest.fixture(scope="package")
def steady(broker: Broker) -> Iterator[Broker]:
    """Start a broker that thirty processes beside it do not upset.

    A Kafka node that another test has restarted loses its partitions when it is held up for two
    seconds. So there is another one here, which nobody restarts.
    """
    if broker.kind != "kafka":
        yield broker
        return
    made = brokers.make("kafka")
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="package")
def history(
    steady: Broker,
    java: list[str],
    go_member: list[str],
    unique: Callable[[str], str],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[History]:
    """Run the groups that the chosen tests ask for to their ends, and provide their history."""
    here = Path(__file__).parent
    names = {
        str(item.callspec.params["name"]): None
        for item in request.session.items
        if isinstance(item, pytest.Function) and "history" in item.fixturenames
        if item.path.parent == here
    }
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = draw_seed("groups of clients")
    programs = {"java": [*java, "Member"], "go": go_member}
    directory = tmp_path_factory.mktemp("groups")
    history = History(steady, programs, unique("groups"), names, seed, directory)
    try:
        history.run()
        yield history
    finally:
        history.kill_members()
