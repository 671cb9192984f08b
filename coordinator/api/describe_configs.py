"""DescribeConfigs: the settings of topics and of the broker, and where each comes from.

Behaviour: all settings, or those that are asked for by name. A topic's own configuration lies over
the broker's setting of it, which lies over Kafka's default; synonyms list them in this order.
Versions: 1 synonyms (KIP-226), 3 types and documentation (KIP-569), 4 flexible.
Simplifications: the broker's settings are all static and read-only, of type string to the client;
no documentation; loggers, client metrics and groups can't be described (INVALID_REQUEST).
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused
from coordinator.log.configs import TOPIC_CONFIGS, Kind, default_of, is_set_by_broker
from coordinator.log.topics import check_name

API_KEY = 32
VERSIONS = range(1, 5)

TOPIC, BROKER = 2, 4
TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG = 1, 4, 5


def handle(request: Any, context: Context) -> Any:
    return context.reply(
        results=[_describe(r, request.include_synonyms, context) for r in request.resources]
    )


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every resource."""
    return context.reply(results=[_result(r, [], Refused(code)) for r in request.resources])


def _describe(resource: Any, with_synonyms: bool, context: Context) -> dict[str, Any]:
    try:
        if resource.resource_type == TOPIC:
            configs = _topic(resource.resource_name, context)
        elif resource.resource_type == BROKER:
            configs = _broker(resource.resource_name, context)
        else:
            raise Refused(Code.INVALID_REQUEST, f"resource type {resource.resource_type}")
    except Refused as refused:
        return _result(resource, [], refused)
    wanted = resource.configuration_keys
    if wanted is not None:
        configs = [config for config in configs if config["name"] in wanted]
    if not with_synonyms:
        configs = [{**config, "synonyms": ()} for config in configs]
    return _result(resource, configs, Refused(Code.NONE))


def _topic(name: str, context: Context) -> list[dict[str, Any]]:
    check_name(name)
    topic = context.broker.topics.get(name)
    if topic is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}")
    answers = []
    for config_name, config in TOPIC_CONFIGS.items():
        values = [(config_name, config.default, DEFAULT_CONFIG)]
        if config.from_broker and is_set_by_broker(config_name, context.broker.config):
            setting = config.from_broker.replace("_", ".")
            value = default_of(config_name, context.broker.config)
            values.insert(0, (setting, value, STATIC_BROKER_CONFIG))
        if config_name in topic.configs:
            values.insert(0, (config_name, topic.configs[config_name], TOPIC_CONFIG))
        answers.append(_config(config_name, values, config.kind, read_only=False))
    return answers


def _broker(name: str, context: Context) -> list[dict[str, Any]]:
    config = context.broker.config
    if name != str(config.node_id):
        raise Refused(Code.INVALID_REQUEST, f"broker {name!r}: this one is {config.node_id}")
    return [
        _config(setting, [(setting, value, STATIC_BROKER_CONFIG)], Kind.STRING, read_only=True)
        for setting, value in config.by_dotted_name().items()
    ]


def _config(
    name: str, values: list[tuple[str, str, int]], kind: Kind, *, read_only: bool
) -> dict[str, Any]:
    """One setting; `values` has the one that holds first."""
    return {
        "name": name,
        "value": values[0][1],
        "read_only": read_only,
        "config_source": values[0][2],
        "is_sensitive": False,
        "synonyms": [
            {"name": synonym, "value": value, "source": source} for synonym, value, source in values
        ],
        "config_type": kind,
        "documentation": None,
    }


def _result(resource: Any, configs: list[dict[str, Any]], refused: Refused) -> dict[str, Any]:
    return {
        "error_code": refused.code,
        "error_message": refused.message or None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
        "configs": configs,
    }
