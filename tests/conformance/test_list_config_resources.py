"""Test that ListConfigResources lists what has a configuration, by type."""

from __future__ import annotations

from coordinator.errors import Code
from tests.conformance.calls import eventually
from tests.conformance.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    TOPIC,
    alter,
)
from tests.conformance.wire import Api, Client


def listed(client: Client, *types: int) -> set[tuple[int, str]]:
    response = client.send(Api.LIST_CONFIG_RESOURCES, 1, resource_types=types)
    assert response.error_code == Code.NONE
    return {(each.resource_type, each.resource_name) for each in response.config_resources}


def test_no_type_means_all_types(client: Client, topic: str) -> None:
    everything = listed(client)
    assert {(TOPIC, topic), (BROKER, "1"), (BROKER_LOGGER, "1")} <= everything
    assert not {name for kind, name in everything if name == "__cluster_metadata"}
    assert listed(client, BROKER, BROKER_LOGGER) == {(BROKER, "1"), (BROKER_LOGGER, "1")}


def test_a_group_is_listed_while_something_is_set_for_it(client: Client, group: str) -> None:
    key = "consumer.session.timeout.ms"
    assert (GROUP, group) not in listed(client, GROUP)
    assert alter(client, GROUP, group, (key, SET, "50000")).code == Code.NONE
    assert eventually(lambda: (GROUP, group) in listed(client, GROUP), True)
    assert alter(client, GROUP, group, (key, DELETE, None)).code == Code.NONE
    assert not eventually(lambda: (GROUP, group) in listed(client, GROUP), False)


def test_a_type_that_there_isn_t_is_refused_with_35(client: Client) -> None:
    response = client.send(Api.LIST_CONFIG_RESOURCES, 1, resource_types=[99])
    assert (response.error_code, response.config_resources) == (Code.UNSUPPORTED_VERSION, ())


def test_version_0_lists_client_metrics_of_which_there_are_none(client: Client) -> None:
    response = client.send(Api.LIST_CONFIG_RESOURCES, 0)
    assert (response.error_code, response.config_resources) == (Code.NONE, ())
    assert listed(client, CLIENT_METRICS) == set()
