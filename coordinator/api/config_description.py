"""Describe the settings of resources: their layered values, and which one is effective.

DescribeConfigs returns all of it, CreateTopics the resulting configuration of a topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from coordinator.api.context import RequestContext
from coordinator.api.loggers import kafka_level_of, list_logger_names
from coordinator.config import BROKER_SETTINGS, INTERNAL_SETTINGS
from coordinator.dynamic_config import (
    DYNAMIC_SETTINGS,
    ConfigSource,
    ConfigSynonym,
    DynamicConfigs,
    ResourceType,
)
from coordinator.errors import Code, Refused
from coordinator.groups.configs import GROUP_CONFIGS
from coordinator.log.configs import TOPIC_CONFIGS
from coordinator.log.topic_names import check_topic_name
from coordinator.settings import ConfigType

_UNKNOWN_KIND = 0
# The settings of a subscription to metrics of clients, with their defaults. Telemetry is not
# served, so none is ever set.
_CLIENT_METRICS = {
    "interval.ms": (ConfigType.INT, "300000"),
    "match": (ConfigType.LIST, ""),
    "metrics": (ConfigType.LIST, ""),
}


class DescribedConfig(NamedTuple):
    """Holds one setting as DescribeConfigs returns it."""

    name: str
    value: str
    source: ConfigSource
    kind: int
    synonyms: list[ConfigSynonym]
    read_only: bool = False


def describe_resource(kind: int, name: str, context: RequestContext) -> list[DescribedConfig]:
    """Return all settings of a resource, given by type and name.

    Raises: Refused for a resource that can't be described.
    """
    find = _DESCRIBERS.get(kind)
    if find is None:
        raise Refused(Code.INVALID_REQUEST, _MALFORMED)
    return find(name, context)


def describe_topic_configs(
    configs: Mapping[str, str], dynamic: DynamicConfigs
) -> list[DescribedConfig]:
    """Return all settings of a topic that has this configuration."""
    described = []
    for name, config in TOPIC_CONFIGS.items():
        if config.is_internal and name not in configs:
            continue
        synonyms = []
        if name in configs:
            synonyms.append(ConfigSynonym(name, configs[name], ConfigSource.TOPIC))
        if config.broker_field:
            synonyms += dynamic.list_config_synonyms(config.broker_field)
        elif config.from_broker:
            synonyms.append(ConfigSynonym(config.from_broker, config.default, ConfigSource.DEFAULT))
        described.append(_describe_setting(name, config.kind, synonyms, config.default))
    return described


def _describe_topic(name: str, context: RequestContext) -> list[DescribedConfig]:
    check_topic_name(name)
    topic = context.services.topics.get(name)
    if topic is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION)
    return describe_topic_configs(topic.configs, context.services.dynamic_configs)


def _describe_broker(name: str, context: RequestContext) -> list[DescribedConfig]:
    """Return all settings of this broker; without a name, those that were set for all brokers."""
    dynamic = context.services.dynamic_configs
    if not name:
        return [
            DescribedConfig(
                key,
                value,
                ConfigSource.DYNAMIC_DEFAULT_BROKER,
                _find_setting_type(key),
                [ConfigSynonym(key, value, ConfigSource.DYNAMIC_DEFAULT_BROKER)],
            )
            for key, value in sorted(dynamic.configs_of_resource(ResourceType.BROKER, "").items())
        ]
    _check_broker_id(name, context, "expected {} or empty string,")
    described = [
        _describe_setting(
            field.replace("_", "."),
            setting.kind,
            dynamic.list_config_synonyms(field),
            setting.default,
        )._replace(read_only=field not in DYNAMIC_SETTINGS)
        for field, setting in BROKER_SETTINGS.items()
        if field not in INTERNAL_SETTINGS
    ]
    directory = ConfigSynonym(
        "log.dirs", str(context.services.config.data_dir), ConfigSource.STATIC_BROKER
    )
    described.append(
        _describe_setting("log.dirs", ConfigType.LIST, [directory], "")._replace(read_only=True)
    )
    return sorted(described)


def _find_setting_type(broker_setting: str) -> ConfigType:
    return BROKER_SETTINGS[broker_setting.replace(".", "_")].kind


def _describe_loggers(name: str, context: RequestContext) -> list[DescribedConfig]:
    if not name:
        raise Refused(Code.INVALID_REQUEST, "Broker id must not be empty")
    _check_broker_id(name, context, "expected {}")
    source = ConfigSource.DYNAMIC_BROKER_LOGGER
    return [
        DescribedConfig(each, kafka_level_of(logging.getLogger(each)), source, _UNKNOWN_KIND, [])
        for each in list_logger_names()
    ]


def _describe_group(name: str, context: RequestContext) -> list[DescribedConfig]:
    if not name:
        raise Refused(Code.INVALID_REQUEST, "Group name must not be empty")
    dynamic = context.services.dynamic_configs
    configs = dynamic.configs_of_resource(ResourceType.GROUP, name)
    described = []
    for key, config in GROUP_CONFIGS.items():
        if config.is_internal and key not in configs:
            continue
        synonyms = [ConfigSynonym(config.from_broker, config.default, ConfigSource.DEFAULT)]
        field = config.from_broker.replace(".", "_")
        if field in BROKER_SETTINGS:
            synonyms = dynamic.list_config_synonyms(field)
        if key in configs:
            synonyms.insert(0, ConfigSynonym(key, configs[key], ConfigSource.GROUP))
        described.append(_describe_setting(key, config.kind, synonyms, config.default))
    return sorted(described)


def _describe_client_metrics(name: str, context: RequestContext) -> list[DescribedConfig]:
    if not name:
        message = "Client metrics subscription name must not be empty"
        raise Refused(Code.INVALID_REQUEST, message)
    return [
        DescribedConfig(key, default, ConfigSource.DEFAULT, kind, [])
        for key, (kind, default) in _CLIENT_METRICS.items()
    ]


def _check_broker_id(name: str, context: RequestContext, expected_format: str) -> None:
    own = context.services.config.node_id
    if not name.removeprefix("-").isdecimal():
        raise Refused(Code.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != own:
        message = f"Unexpected broker id, {expected_format.format(own)} but received {name}"
        raise Refused(Code.INVALID_REQUEST, message)


def _describe_setting(
    name: str, kind: int, synonyms: list[ConfigSynonym], default: str
) -> DescribedConfig:
    effective = synonyms[0] if synonyms else ConfigSynonym(name, default, ConfigSource.DEFAULT)
    return DescribedConfig(name, effective.value, effective.source, kind, synonyms)


_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
_DESCRIBERS: Mapping[int, Callable[[str, RequestContext], list[DescribedConfig]]] = {
    ResourceType.TOPIC: _describe_topic,
    ResourceType.BROKER: _describe_broker,
    ResourceType.BROKER_LOGGER: _describe_loggers,
    ResourceType.CLIENT_METRICS: _describe_client_metrics,
    ResourceType.GROUP: _describe_group,
}


def to_common_response_fields(described: DescribedConfig) -> dict[str, Any]:
    """Return the response fields that CreateTopics and DescribeConfigs have in common."""
    return {
        "name": described.name,
        "value": described.value,
        "read_only": described.read_only,
        "config_source": described.source,
        "is_sensitive": False,
    }
