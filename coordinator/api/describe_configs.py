"""Handles DescribeConfigs, which returns the settings of topics, the broker and groups.

Behaviour: all settings of a resource, or those that are requested by name. Each has its effective
value, and as synonyms the values of its layers (see `config_description`), the effective one first.
The broker's settings may be altered while it runs if they aren't read-only; those of all brokers
(no name) are only what was set for all. A broker's loggers have levels.
Versions: 1 synonyms (KIP-226), 3 types and documentation (KIP-569), 4 flexible.
Simplifications: no documentation; of the broker the settings that this broker has, where Kafka has
some 340; none is sensitive.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import Context
from coordinator.api.describing import Described, as_fields, describe
from coordinator.errors import Code, Refused

API_KEY = 32
VERSIONS = range(1, 5)


def handle(request: Any, context: Context) -> Any:
    return context.reply(
        results=[_answer(r, request.include_synonyms, context) for r in request.resources]
    )


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every resource."""
    return context.reply(results=[_result(r, [], Refused(code)) for r in request.resources])


def _answer(resource: Any, with_synonyms: bool, context: Context) -> dict[str, Any]:
    try:
        found = describe(resource.resource_type, resource.resource_name, context)
    except Refused as refused:
        return _result(resource, [], refused)
    wanted = resource.configuration_keys
    configs = [
        _config(described, with_synonyms)
        for described in found
        if not wanted or described.name in wanted
    ]
    return _result(resource, configs, Refused(Code.NONE))


def _config(described: Described, with_synonyms: bool) -> dict[str, Any]:
    synonyms = described.synonyms if with_synonyms else ()
    return {
        **as_fields(described),
        "synonyms": [
            {"name": name, "value": value, "source": source} for name, value, source in synonyms
        ],
        "config_type": described.kind,
        "documentation": None,
    }


def _result(resource: Any, configs: list[dict[str, Any]], refused: Refused) -> dict[str, Any]:
    return {
        "error_code": refused.code,
        "error_message": refused.message,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
        "configs": configs,
    }
