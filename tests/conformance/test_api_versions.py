"""Test that ApiVersions promises no more than real Kafka, and all that librdkafka needs."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.kafka_versions import KAFKA_4_4
from tests.conformance.wire import Api, Client

# The versions that librdkafka 2.16 sends for what the runtime does.
LIBRDKAFKA: Mapping[Api, int] = {
    Api.PRODUCE: 10,
    Api.FETCH: 16,
    Api.LIST_OFFSETS: 7,
    Api.METADATA: 13,
    Api.OFFSET_COMMIT: 9,
    Api.OFFSET_FETCH: 9,
    Api.FIND_COORDINATOR: 2,
    Api.JOIN_GROUP: 5,
    Api.HEARTBEAT: 3,
    Api.LEAVE_GROUP: 1,
    Api.SYNC_GROUP: 3,
    Api.API_VERSIONS: 3,
    Api.CREATE_TOPICS: 4,
    Api.INIT_PRODUCER_ID: 4,
    Api.ADD_PARTITIONS_TO_TXN: 0,
    Api.ADD_OFFSETS_TO_TXN: 0,
    Api.END_TXN: 1,
    Api.TXN_OFFSET_COMMIT: 3,
}


def test_what_a_broker_advertises_is_within_what_kafka_advertises(
    broker: Broker, client: Client
) -> None:
    if broker.kind == "kafka":
        pytest.skip("Kafka itself")
    beyond = {
        key: versions
        for key, versions in client.advertised().items()
        if key not in KAFKA_4_4
        or versions[0] < KAFKA_4_4[key][0]
        or versions[-1] > KAFKA_4_4[key][1]
    }
    assert beyond == {}


def test_real_kafka_advertises_what_the_table_of_these_tests_says(
    broker: Broker, client: Client
) -> None:
    if broker.kind != "kafka":
        pytest.skip("the table is of real Kafka")
    advertised = {key: (each[0], each[-1]) for key, each in client.advertised().items()}
    assert advertised == KAFKA_4_4


@pytest.mark.parametrize("api", LIBRDKAFKA, ids=lambda api: api.name.lower())
def test_the_version_that_librdkafka_sends_is_advertised(client: Client, api: Api) -> None:
    assert LIBRDKAFKA[api] in client.advertised().get(api, range(0))


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_api_versions_is_answered_at_each_version_with_a_header_of_version_0(
    client: Client, version: int
) -> None:
    named = {"client_software_name": "conformance", "client_software_version": "1"}
    response = client.send(Api.API_VERSIONS, version, **(named if version >= 3 else {}))
    assert response.error_code == Code.NONE
    assert Api.PRODUCE in {each.api_key for each in response.api_keys}


def test_a_version_of_api_versions_from_the_future_is_answered_with_35_in_version_0(
    client: Client,
) -> None:
    client.write_frame(struct.pack(">hhih", Api.API_VERSIONS, 99, 7, -1) + b"\0")
    correlation_id, code, count = struct.unpack_from(">ihi", client.read_frame())
    assert (correlation_id, code) == (7, Code.UNSUPPORTED_VERSION)
    assert count >= 1, "the range of ApiVersions itself is told, so that the client can ask again"


def test_requests_that_were_sent_at_once_are_answered_in_order(client: Client) -> None:
    numbers = [client.post(Api.API_VERSIONS, 0) for _ in range(5)]
    assert all(client.receive(number).error_code == Code.NONE for number in numbers)


def test_a_client_whose_id_is_not_in_utf_8_is_served(client: Client) -> None:
    name = "Zähler".encode("latin-1")
    head = struct.pack(">hhih", Api.API_VERSIONS, 0, 7, len(name))
    client.write_frame(head + name)
    assert struct.unpack_from(">ih", client.read_frame()) == (7, Code.NONE)
