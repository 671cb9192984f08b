"""Describe and alter configurations for the cases about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.conformance.wire import Api, Client, plain

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


class Outcome(NamedTuple):
    """Represents the outcome for one resource."""

    code: int
    message: str | None


DONE = (0, None)


class Value(NamedTuple):
    """Represents one setting: its value, its source, and each layer's value and source."""

    value: str | None
    source: int
    layers: list[tuple[str, str | None, int]]


def describe(
    client: Client,
    *resources: tuple[int, str],
    keys: Iterable[str] | None = None,
    version: int = 4,
    synonyms: bool = True,
) -> list[dict[str, Any]]:
    """Describe resources; return the results, each with its settings sorted by name."""
    asked = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        for kind, name in resources
    ]
    response = client.send(
        Api.DESCRIBE_CONFIGS, version, resources=asked, include_synonyms=synonyms
    )
    results: list[dict[str, Any]] = plain(response)["results"]
    for result in results:
        result["configs"].sort(key=lambda config: config["name"])
    return results


def values(client: Client, kind: int, name: str, *keys: str) -> dict[str, Value]:
    """Return settings of one resource by name, all of them if no key is given."""
    [result] = describe(client, (kind, name), keys=keys or None)
    assert result["error_code"] == 0, result
    return {
        config["name"]: Value(
            config["value"],
            config["config_source"],
            [(each["name"], each["value"], each["source"]) for each in config["synonyms"]],
        )
        for config in result["configs"]
    }


def value(client: Client, kind: int, name: str, key: str) -> str | None:
    return values(client, kind, name, key)[key].value


def alter(
    client: Client,
    kind: int,
    name: str,
    *operations: tuple[str, int, str | None],
    validate_only: bool = False,
    version: int = 1,
) -> Outcome:
    """Alter one resource by operations; return the outcome."""
    [outcome] = alter_all(
        client, (kind, name, operations), validate_only=validate_only, version=version
    )
    return outcome


def alter_all(
    client: Client,
    *resources: tuple[int, str, Iterable[tuple[str, int, str | None]]],
    validate_only: bool = False,
    version: int = 1,
) -> list[Outcome]:
    """Alter several resources; return the outcomes, which name exactly those in that order."""
    asked = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {"name": key, "config_operation": operation, "value": value}
                for key, operation, value in operations
            ],
        }
        for kind, name, operations in resources
    ]
    response = client.send(
        Api.INCREMENTAL_ALTER_CONFIGS, version, resources=asked, validate_only=validate_only
    )
    named = [(each.resource_type, each.resource_name) for each in response.responses]
    assert named == [(kind, name) for kind, name, _ in resources]
    return [Outcome(int(each.error_code), each.error_message) for each in response.responses]
