"""Test clients that authenticate again before their session ends (KIP-368), or may not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import KafkaError, Producer

from tests.kafka.secured.access import describe_access
from tests.kafka.secured.administration import Administration
from tests.kafka.secured.listeners import MECHANISMS, REAUTHENTICATION_MS
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="test")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_broker_counts_how_often_clients_authenticate_again(
    mechanism: str, secured_kafka: SecuredKafka
) -> None:
    producers = [
        Producer(dict(describe_access(secured_kafka, f"{listener}/{mechanism}").settings))
        for listener in ("REAUTHENTICATED", "SASL_SSL")
    ]
    for producer in producers:
        producer.list_topics(timeout=HANG_LIMIT_S)
    counted = secured_kafka.read_reauthentications("REAUTHENTICATED")
    wait_until(
        lambda: secured_kafka.read_reauthentications("REAUTHENTICATED") > counted,
        what=f"no authentication after {REAUTHENTICATION_MS} ms",
    )
    for producer in producers:
        producer.list_topics(timeout=HANG_LIMIT_S)
    assert secured_kafka.read_reauthentications("SASL_SSL") == 0


def test_a_client_fetches_its_next_token_before_the_last_one_ends(
    secured_kafka: SecuredKafka,
) -> None:
    oidc = secured_kafka.oidc
    lifetime_s = oidc.token_lifetime_s
    oidc.token_lifetime_s = 3
    try:
        access = describe_access(secured_kafka, "SASL_SSL/OAUTHBEARER")
        producer = Producer(dict(access.settings))
        producer.list_topics(timeout=HANG_LIMIT_S)
        issued_count = oidc.issued_count

        def has_another_token() -> bool:
            producer.poll(0)
            return oidc.issued_count > issued_count

        wait_until(has_another_token, what="no second token")
        producer.list_topics(timeout=HANG_LIMIT_S)
    finally:
        oidc.token_lifetime_s = lifetime_s


def connect_producer(settings: Mapping[str, str], error_codes: list[int]) -> Producer:
    """Return a producer with the connection that it keeps; codes of its errors go to the list.

    librdkafka closes the connection to the bootstrap address once it has the first metadata, and
    authenticates anew on that to the advertised address.
    """
    lasting_states: set[str] = set()

    def note_states(statistics: str) -> None:
        brokers = json.loads(statistics)["brokers"].values()
        lasting_states.update(broker["state"] for broker in brokers if broker["nodeid"] >= 0)

    producer = Producer(
        {
            **settings,
            "error_cb": lambda error: error_codes.append(error.code()),
            "stats_cb": note_states,
            "statistics.interval.ms": 100,
        }
    )

    def is_connected() -> bool:
        producer.poll(0)
        return "UP" in lasting_states

    wait_until(is_connected, what="no connection to the advertised address")
    return producer


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_removed_user_is_refused_as_soon_as_it_authenticates_again(
    mechanism: str,
    secured_kafka: SecuredKafka,
    administration: Administration,
    unique: Callable[[str], str],
) -> None:
    user, password = unique("leaver"), "leaver-secret"

    def connect(listener: str, codes: list[int]) -> Producer:
        access = describe_access(secured_kafka, f"{listener}/{mechanism}", user, password)
        return connect_producer(access.settings, codes)

    administration.set_scram_password(user, password)
    ending_codes: list[int] = []
    lasting_codes: list[int] = []
    ending = connect("REAUTHENTICATED", ending_codes)
    lasting = connect("SASL_SSL", lasting_codes)
    administration.remove_scram_user(user)

    def is_refused() -> bool:
        ending.poll(0)
        return KafkaError._AUTHENTICATION in ending_codes

    wait_until(is_refused, what="the removed user goes on")
    lasting.list_topics(timeout=HANG_LIMIT_S)
    lasting.poll(0)
    assert lasting_codes == []
