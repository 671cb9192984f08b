"""Describes the settings of resources: their layered values, and which one is effective.

DescribeConfigs returns all of it, CreateTopics the resulting configuration of a topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from coordinator.api.context import Context
from coordinator.api.loggers import level_of, logger_names
from coordinator.config import INTERNAL, SETTINGS
from coordinator.dynamic import DYNAMIC, DynamicConfigs, Layer, ResourceType, Source
from coordinator.errors import Code, Refused
from coordinator.groups.configs import GROUP_CONFIGS
from coordinator.log.configs import TOPIC_CONFIGS
from coordinator.log.topics import check_name
from coordinator.settings import Kind

_UNKNOWN_KIND = 0
# The settings of a subscription to metrics of clients, with their defaults. Telemetry is not
# served, so none is ever set.
_CLIENT_METRICS = {
    "interval.ms": (Kind.INT, "300000"),
    "match": (Kind.LIST, ""),
    "metrics": (Kind.LIST, ""),
}


class Described(NamedTuple):
    """Holds one setting as DescribeConfigs returns it."""

    name: str
    value: str
    source: Source
    kind: int
    synonyms: list[Layer]
    read_only: bool = False


def describe(kind: int, name: str, context: Context) -> list[Described]:
    """Return all settings of a resource, given by type and name.

    Raises: Refused for a resource that can't be described.
    """
    find = _BY_KIND.get(kind)
    if find is None:
        raise Refused(Code.INVALID_REQUEST, _MALFORMED)
    return find(name, context)


def describe_topic(configs: Mapping[str, str], dynamic: DynamicConfigs) -> list[Described]:
    """Return all settings of a topic that has this configuration."""
    described = []
    for name, config in TOPIC_CONFIGS.items():
        synonyms = []
        if name in configs:
            synonyms.append(Layer(name, configs[name], Source.TOPIC))
        if config.broker_field:
            synonyms += dynamic.layers(config.broker_field)
        elif config.from_broker:
            synonyms.append(Layer(config.from_broker, config.default, Source.DEFAULT))
        described.append(_described(name, config.kind, synonyms, config.default))
    return described


def _topic(name: str, context: Context) -> list[Described]:
    check_name(name)
    topic = context.broker.topics.get(name)
    if topic is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION)
    return describe_topic(topic.configs, context.broker.dynamic)


def _broker(name: str, context: Context) -> list[Described]:
    """Return all settings of this broker; without a name, those that were set for all brokers."""
    dynamic = context.broker.dynamic
    if not name:
        return [
            Described(
                key,
                value,
                Source.DYNAMIC_DEFAULT_BROKER,
                _kind_of(key),
                [Layer(key, value, Source.DYNAMIC_DEFAULT_BROKER)],
            )
            for key, value in sorted(dynamic.of(ResourceType.BROKER, "").items())
        ]
    _check_broker_id(name, context, "expected {} or empty string,")
    described = [
        _described(
            field.replace("_", "."), setting.kind, dynamic.layers(field), setting.default
        )._replace(read_only=field not in DYNAMIC)
        for field, setting in SETTINGS.items()
        if field not in INTERNAL
    ]
    directory = Layer("log.dirs", str(context.broker.config.data_dir), Source.STATIC_BROKER)
    described.append(_described("log.dirs", Kind.LIST, [directory], "")._replace(read_only=True))
    return sorted(described)


def _kind_of(broker_setting: str) -> Kind:
    return SETTINGS[broker_setting.replace(".", "_")].kind


def _loggers(name: str, context: Context) -> list[Described]:
    if not name:
        raise Refused(Code.INVALID_REQUEST, "Broker id must not be empty")
    _check_broker_id(name, context, "expected {}")
    source = Source.DYNAMIC_BROKER_LOGGER
    return [
        Described(each, level_of(logging.getLogger(each)), source, _UNKNOWN_KIND, [])
        for each in logger_names()
    ]


def _group(name: str, context: Context) -> list[Described]:
    if not name:
        raise Refused(Code.INVALID_REQUEST, "Group name must not be empty")
    dynamic = context.broker.dynamic
    configs = dynamic.of(ResourceType.GROUP, name)
    described = []
    for key, config in GROUP_CONFIGS.items():
        synonyms = [Layer(config.from_broker, config.default, Source.DEFAULT)]
        field = config.from_broker.replace(".", "_")
        if field in SETTINGS:
            synonyms = dynamic.layers(field)
        if key in configs:
            synonyms.insert(0, Layer(key, configs[key], Source.GROUP))
        described.append(_described(key, config.kind, synonyms, config.default))
    return sorted(described)


def _client_metrics(name: str, context: Context) -> list[Described]:
    if not name:
        message = "Client metrics subscription name must not be empty"
        raise Refused(Code.INVALID_REQUEST, message)
    return [
        Described(key, default, Source.DEFAULT, kind, [])
        for key, (kind, default) in _CLIENT_METRICS.items()
    ]


def _check_broker_id(name: str, context: Context, expected: str) -> None:
    own = context.broker.config.node_id
    if not name.removeprefix("-").isdecimal():
        raise Refused(Code.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != own:
        message = f"Unexpected broker id, {expected.format(own)} but received {name}"
        raise Refused(Code.INVALID_REQUEST, message)


def _described(name: str, kind: int, layers: list[Layer], default: str) -> Described:
    effective = layers[0] if layers else Layer(name, default, Source.DEFAULT)
    return Described(name, effective.value, effective.source, kind, layers)


_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
_BY_KIND: Mapping[int, Callable[[str, Context], list[Described]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _loggers,
    ResourceType.CLIENT_METRICS: _client_metrics,
    ResourceType.GROUP: _group,
}


def as_fields(described: Described) -> dict[str, Any]:
    """Return the response fields that CreateTopics and DescribeConfigs have in common."""
    return {
        "name": described.name,
        "value": described.value,
        "read_only": described.read_only,
        "config_source": described.source,
        "is_sensitive": False,
    }
