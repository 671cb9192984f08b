"""Give cases a connection, and topics and transactional ids of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance import calls
from tests.conformance.consumers import Consumer, await_known
from tests.conformance.migrants import Migrant
from tests.conformance.wire import Api, Client

KILLING = ("test_restart.py", "test_transaction_records.py", "test_incremental_alter_configs.py")
"""Modules that kill the broker which all share, or start it again."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules that kill the broker first, before it has the topics of all others.

    Real Kafka recovers each of these from its log, which takes it half a minute in the end.
    """
    items.sort(key=lambda item: item.path.name not in KILLING)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of random histories, which takes a `seed`, with as many as `--histories` says."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--histories")))


@pytest.fixture(scope="session")
def coordinators(broker: Broker) -> None:
    """Find each kind of coordinator once, upon which real Kafka creates their topics."""
    with Client(broker.bootstrap_servers) as client:
        for kind in (0, 1):
            found = client.send(Api.FIND_COORDINATOR, 2, key="anything", key_type=kind)
            assert found.error_code == Code.NONE, found


@pytest.fixture
def connect(broker: Broker, coordinators: None) -> Iterator[Callable[[], Client]]:
    """Return a function that opens connections to the broker, which are closed at the end."""
    made: list[Client] = []

    def connect_one() -> Client:
        made.append(Client(broker.bootstrap_servers, complete=broker.kind == "kafka"))
        return made[-1]

    yield connect_one
    for each in made:
        each.close()


@pytest.fixture
def client(connect: Callable[[], Client]) -> Client:
    """Return one connection to the broker."""
    return connect()


@pytest.fixture
def topic(client: Client, unique: Callable[[str], str]) -> str:
    """Create a topic of one partition."""
    name = unique("topic")
    calls.create_topic(client, name)
    return name


@pytest.fixture
def other_topic(client: Client, unique: Callable[[str], str]) -> str:
    """Create another topic of one partition."""
    name = unique("other-topic")
    calls.create_topic(client, name)
    return name


@pytest.fixture
def transactional_id(unique: Callable[[str], str]) -> str:
    return unique("txn")


# Groups that are converted from one protocol to the other


@pytest.fixture
def six(client: Client, unique: Callable[[str], str], group: str) -> tuple[str, UUID]:
    """Create a topic of six partitions that the group's coordinator knows; return it and its id."""
    name = unique("six")
    calls.create_topic(client, name, partitions=6)
    await_known(client, group, name)
    return name, calls.topic_id(client, name)


@pytest.fixture
def classic(
    connect: Callable[[], Client], group: str, six: tuple[str, UUID]
) -> Callable[..., Migrant]:
    """Return a function that makes classic consumers of the topic of six on own connections."""
    return lambda instance_id=None, **fields: Migrant(
        connect(), group, instance_id, topics=(six[0],), **fields
    )


@pytest.fixture
def consumer(connect: Callable[[], Client], group: str) -> Callable[..., Consumer]:
    """Return a function that makes members with the consumer protocol on own connections."""
    return lambda **fields: Consumer(connect(), group, **fields)


@pytest.fixture
def pair(client: Client, group: str, unique: Callable[[str], str]) -> tuple[str, UUID]:
    """Create a topic of two partitions that the group's coordinator knows; return it and its id."""
    name = unique("pair")
    calls.create_topic(client, name, partitions=2)
    await_known(client, group, name)
    return name, calls.topic_id(client, name)
