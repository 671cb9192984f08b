"""Handle ListGroups, which lists the groups of all protocols.

Behaviour: lists all groups, of either protocol, also those that only have offsets. While a shard is
being loaded the request gets COORDINATOR_LOAD_IN_PROGRESS.
Versions: v3 flexible; v4 a filter by state, and the state; v5 a filter by type, and the type. Names
in filters are compared without regard to case, those of states also without surrounding blanks; an
unknown name matches nothing.
Simplifications: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.errors import Code

if TYPE_CHECKING:
    from kio.schema.list_groups.v5.request import ListGroupsRequest
    from kio.schema.list_groups.v5.response import ListGroupsResponse

API_KEY = 16
VERSIONS = range(6)


def handle_request(
    request: ListGroupsRequest, context: RequestContext[ListGroupsResponse]
) -> ListGroupsResponse:
    states = {state.lower().strip() for state in getattr(request, "states_filter", ())}
    types = {kind.lower() for kind in getattr(request, "types_filter", ())}
    return context.build_response(
        groups=[
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.phase,
                "group_type": group.kind,
            }
            for group in context.services.coordinators.groups.list_groups_unless_loading()
            if (not states or group.phase.lower() in states) and (not types or group.kind in types)
        ]
    )


def build_error_response(
    request: ListGroupsRequest, context: RequestContext[ListGroupsResponse], code: Code
) -> ListGroupsResponse:
    return context.build_response(error_code=code, groups=())
