"""Handle DescribeConfigs, which returns the settings of topics, the broker and groups.

Behaviour: all settings of a resource, or those that are requested by name. Each has its effective
value, and as synonyms the values of its layers (see `config_description`), the effective one first.
The broker's settings may be altered while it runs if they aren't read-only; those of all brokers
(no name) are only what was set for all. A broker's loggers have levels.
Versions: 1 synonyms (KIP-226), 3 types and documentation (KIP-569), 4 flexible.
Simplifications: no documentation; of the broker the settings that this broker has, where Kafka has
some 340; none is sensitive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.api.config_description import (
    DescribedConfig,
    describe_resource,
    to_common_response_fields,
)
from coordinator.api.context import RequestContext
from coordinator.errors import SUCCESS, Code, Outcome, Refused

if TYPE_CHECKING:
    from kio.schema.describe_configs.v4.request import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )
    from kio.schema.describe_configs.v4.response import DescribeConfigsResponse

API_KEY = 32
VERSIONS = range(1, 5)


def handle_request(
    request: DescribeConfigsRequest, context: RequestContext[DescribeConfigsResponse]
) -> DescribeConfigsResponse:
    return context.build_response(
        results=[
            _describe_and_filter(r, request.include_synonyms, context) for r in request.resources
        ]
    )


def build_error_response(
    request: DescribeConfigsRequest, context: RequestContext[DescribeConfigsResponse], code: Code
) -> DescribeConfigsResponse:
    """Return a response with `code` for every resource."""
    return context.build_response(
        results=[_build_resource_result(r, [], Outcome(code)) for r in request.resources]
    )


def _describe_and_filter(
    resource: DescribeConfigsResource, with_synonyms: bool, context: RequestContext
) -> dict[str, Any]:
    try:
        found = describe_resource(resource.resource_type, resource.resource_name, context)
    except Refused as refused:
        return _build_resource_result(resource, [], refused.outcome)
    wanted = resource.configuration_keys
    configs = [
        _build_config_fields(described, with_synonyms)
        for described in found
        if not wanted or described.name in wanted
    ]
    return _build_resource_result(resource, configs, SUCCESS)


def _build_config_fields(described: DescribedConfig, with_synonyms: bool) -> dict[str, Any]:
    synonyms = described.synonyms if with_synonyms else ()
    return {
        **to_common_response_fields(described),
        "synonyms": [
            {"name": name, "value": value, "source": source} for name, value, source in synonyms
        ],
        "config_type": described.kind,
        "documentation": None,
    }


def _build_resource_result(
    resource: DescribeConfigsResource, configs: list[dict[str, Any]], outcome: Outcome
) -> dict[str, Any]:
    return {
        "error_code": outcome.code,
        "error_message": outcome.message,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
        "configs": configs,
    }
