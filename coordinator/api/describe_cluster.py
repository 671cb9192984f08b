"""Handle DescribeCluster, which returns the cluster's id and its one broker.

Behaviour: the broker is its own controller. Only broker endpoints are listed; asking for
controllers gets MISMATCHED_ENDPOINT_TYPE, anything else UNSUPPORTED_ENDPOINT_TYPE.
Versions: 1 endpoint types (KIP-919), 2 fenced brokers (KIP-1073).
Simplifications: without an authoriser every operation is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.api.metadata import CLUSTER_OPERATIONS
from coordinator.errors import Code, Refused

if TYPE_CHECKING:
    from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
    from kio.schema.describe_cluster.v2.response import DescribeClusterResponse

API_KEY = 60
VERSIONS = range(3)

_BROKERS, _CONTROLLERS = 1, 2
_OPERATIONS_NOT_REQUESTED = -(2**31)


def handle_request(
    request: DescribeClusterRequest, context: RequestContext[DescribeClusterResponse]
) -> DescribeClusterResponse:
    endpoint_type = getattr(request, "endpoint_type", _BROKERS)
    if endpoint_type == _CONTROLLERS:
        message = (
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER"
        )
        return _refuse_with_message(context, Refused(Code.MISMATCHED_ENDPOINT_TYPE, message))
    if endpoint_type != _BROKERS:
        message = f"Unsupported endpoint type {endpoint_type}"
        return _refuse_with_message(context, Refused(Code.UNSUPPORTED_ENDPOINT_TYPE, message))
    services = context.services
    endpoint = services.endpoint
    wants_operations = request.include_cluster_authorized_operations
    return context.build_response(
        cluster_id=services.cluster_id,
        controller_id=services.config.node_id,
        brokers=[
            {
                "broker_id": endpoint["node_id"],
                "host": endpoint["host"],
                "port": endpoint["port"],
                "is_fenced": False,
            }
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if wants_operations
        else _OPERATIONS_NOT_REQUESTED,
    )


def build_error_response(
    request: DescribeClusterRequest, context: RequestContext[DescribeClusterResponse], code: Code
) -> DescribeClusterResponse:
    return _refuse_with_message(context, Refused(code))


def _refuse_with_message(
    context: RequestContext[DescribeClusterResponse], refusal: Refused
) -> DescribeClusterResponse:
    message = refusal.message or None
    return context.build_response(
        error_code=refusal.code, error_message=message, cluster_id="", brokers=()
    )
