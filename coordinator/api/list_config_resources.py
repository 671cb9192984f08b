"""Handle ListConfigResources, which lists resources that have a configuration (KIP-1142).

Behaviour: lists resources of the requested types, of all types if none is given: all topics, this
broker, its loggers, and the groups for which something is set. An unknown type gets
UNSUPPORTED_VERSION.
Versions: 0 (ListClientMetricsResources, KIP-714) client metrics only, 1 all types.
Simplifications: there are no subscriptions to metrics of clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.dynamic_config import ResourceType
from coordinator.errors import Code

if TYPE_CHECKING:
    from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
    from kio.schema.list_config_resources.v1.response import ListConfigResourcesResponse

API_KEY = 74
VERSIONS = range(2)

# In the order of Kafka's answer.
_TYPES = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def handle_request(
    request: ListConfigResourcesRequest, context: RequestContext[ListConfigResourcesResponse]
) -> ListConfigResourcesResponse:
    wanted = getattr(request, "resource_types", [ResourceType.CLIENT_METRICS]) or _TYPES
    if not set(wanted) <= set(_TYPES):
        return build_error_response(request, context, Code.UNSUPPORTED_VERSION)
    resources = [
        {"resource_name": name, "resource_type": kind}
        for kind in _TYPES
        if kind in wanted
        for name in _list_resource_names(kind, context)
    ]
    return context.build_response(config_resources=resources)


def build_error_response(
    request: ListConfigResourcesRequest,
    context: RequestContext[ListConfigResourcesResponse],
    code: Code,
) -> ListConfigResourcesResponse:
    return context.build_response(error_code=code, config_resources=())


def _list_resource_names(kind: ResourceType, context: RequestContext) -> list[str]:
    services = context.services
    match kind:
        case ResourceType.TOPIC:
            return sorted(topic.name for topic in services.topics)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(services.config.node_id)]
        case _:
            return services.dynamic_configs.resource_names(kind)
