"""Test that AlterConfigs sets a resource's whole configuration at once."""

from __future__ import annotations

import pytest

from coordinator.errors import Code
from tests.conformance.calls import eventually
from tests.conformance.configs import BROKER, BROKER_LOGGER, DONE, GROUP, TOPIC, value, values
from tests.conformance.wire import Api, Client

RETENTION, MAX_BYTES = "retention.ms", "message.max.bytes"


def give(
    client: Client,
    kind: int,
    name: str,
    *configs: tuple[str, str | None],
    version: int = 2,
    validate_only: bool = False,
) -> tuple[int, str | None]:
    """Alter one resource and return its code and message."""
    pairs = [{"name": key, "value": text} for key, text in configs]
    response = client.send(
        Api.ALTER_CONFIGS,
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configs": pairs}],
        validate_only=validate_only,
    )
    [answer] = response.responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return int(answer.error_code), answer.error_message


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_isn_t_given_is_no_longer_set(client: Client, topic: str, version: int) -> None:
    assert give(client, TOPIC, topic, ("segment.ms", "77"), version=version) == DONE
    expected = ("77", "604800000")

    def found() -> tuple[str | None, str | None]:
        both = values(client, TOPIC, topic, "segment.ms", RETENTION)
        return both["segment.ms"].value, both[RETENTION].value

    assert eventually(found, expected) == expected
    assert give(client, TOPIC, topic, version=version) == DONE
    nothing = ("604800000", "604800000")
    assert eventually(found, nothing) == nothing


def test_validate_only_changes_nothing(client: Client, topic: str) -> None:
    assert give(client, TOPIC, topic, validate_only=True) == DONE
    assert value(client, TOPIC, topic, RETENTION) == "-1"


@pytest.mark.parametrize(
    ("configs", "code", "message"),
    [
        (
            [(RETENTION, None)],
            Code.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        ([("no.such", "1")], Code.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (
            [(RETENTION, "4"), (RETENTION, "5")],
            Code.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            [(RETENTION, "-2")],
            Code.INVALID_CONFIG,
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
    ],
)
def test_a_configuration_that_can_t_be_is_refused_with_the_reason(
    client: Client,
    topic: str,
    configs: list[tuple[str, str | None]],
    code: Code,
    message: str,
) -> None:
    assert give(client, TOPIC, topic, *configs) == (code, message)
    assert value(client, TOPIC, topic, RETENTION) == "-1"


def test_a_topic_that_there_isn_t_is_refused_with_3(client: Client) -> None:
    message = "The topic 'nope' does not exist."
    assert give(client, TOPIC, "nope") == (Code.UNKNOWN_TOPIC_OR_PARTITION, message)


def test_the_broker_s_dynamic_settings_are_given_and_taken(client: Client) -> None:
    assert give(client, BROKER, "1", (MAX_BYTES, "2000001")) == DONE
    assert eventually(lambda: value(client, BROKER, "1", MAX_BYTES), "2000001") == "2000001"
    assert give(client, BROKER, "1") == DONE
    assert eventually(lambda: value(client, BROKER, "1", MAX_BYTES), "1048588") == "1048588"
    assert give(client, BROKER, "1", ("num.partitions", "3")) == (
        Code.INVALID_REQUEST,
        "Cannot update these configs dynamically: [num.partitions]",
    )


def test_a_group_s_settings_are_given_and_taken(client: Client, group: str) -> None:
    key = "consumer.heartbeat.interval.ms"
    assert give(client, GROUP, group, (key, "6000")) == DONE
    assert eventually(lambda: value(client, GROUP, group, key), "6000") == "6000"
    assert give(client, GROUP, group) == DONE
    assert eventually(lambda: value(client, GROUP, group, key), "5000") == "5000"


def test_loggers_have_no_whole_configuration(client: Client) -> None:
    refused = (Code.INVALID_REQUEST, "Unknown resource type 8")
    assert give(client, BROKER_LOGGER, "1", ("root", "INFO")) == refused
