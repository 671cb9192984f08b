"""Handle AlterConfigs, which replaces the whole configuration of resources.

Behaviour: what isn't in the request is no longer set. Each resource is answered for itself: topics,
this broker, all brokers, groups. `validate_only` checks and changes nothing.
Versions: 2 flexible. Kafka advises IncrementalAlterConfigs (KIP-339).
Simplifications: see `config_alteration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.config_alteration import (
    alter_each_resource,
    build_resource_result,
    create_null_values_error,
    find_alterable_resource,
)
from coordinator.api.context import RequestContext
from coordinator.errors import Code, Outcome

if TYPE_CHECKING:
    from kio.schema.alter_configs.v2.request import AlterConfigsRequest, AlterConfigsResource
    from kio.schema.alter_configs.v2.response import AlterConfigsResponse

API_KEY = 33
VERSIONS = range(3)


def handle_request(
    request: AlterConfigsRequest, context: RequestContext[AlterConfigsResponse]
) -> AlterConfigsResponse:
    def replace_resource_configs(resource: AlterConfigsResource) -> None:
        nulls = [config.name for config in resource.configs if config.value is None]
        if nulls:
            raise create_null_values_error(nulls)
        alterable_resource = find_alterable_resource(
            resource.resource_type, resource.resource_name, context
        )
        configs = alterable_resource.validate_configs(
            {each.name: each.value for each in resource.configs if each.value is not None}
        )
        if not request.validate_only:
            alterable_resource.save_and_replace_configs(configs)

    return context.build_response(
        responses=alter_each_resource(request.resources, replace_resource_configs)
    )


def build_error_response(
    request: AlterConfigsRequest, context: RequestContext[AlterConfigsResponse], code: Code
) -> AlterConfigsResponse:
    """Return a response with `code` for every resource."""
    return context.build_response(
        responses=[build_resource_result(each, Outcome(code)) for each in request.resources]
    )
