"""Handle DeleteGroups, which deletes empty groups with all their offsets (KIP-229).

Behaviour: each group has a result of its own, one even if it is named twice: GROUP_ID_NOT_FOUND;
NON_EMPTY_GROUP for one with members. Pending offsets of open transactions are deleted too.
Versions: v1 nothing new; v2 flexible.
A group with many offsets is deleted in slices (see `groups.offsets`); meanwhile it is answered with
COORDINATOR_LOAD_IN_PROGRESS.
An empty group id is valid, for old clients' sake.
Simplifications: none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.api.deferred_answer import Deferrable, answer_in_slices
from coordinator.errors import Code, Refused
from coordinator.groups.offsets import GroupOffsets
from coordinator.shard.slices import Sliced

if TYPE_CHECKING:
    from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
    from kio.schema.delete_groups.v2.response import DeleteGroupsResponse

API_KEY = 42
VERSIONS = range(3)


def handle_request(
    request: DeleteGroupsRequest, context: RequestContext[DeleteGroupsResponse]
) -> Deferrable[DeleteGroupsResponse]:
    groups = context.services.coordinators.groups
    return answer_in_slices(
        _delete_groups(dict.fromkeys(request.groups_names), groups.offsets),
        groups.sliced_executor,
        lambda results: context.build_response(results=results),
    )


def _delete_groups(group_ids: Iterable[str], offsets: GroupOffsets) -> Sliced[list[dict[str, Any]]]:
    results = []
    for group_id in group_ids:
        code = Code.NONE
        try:
            yield from offsets.delete_group_in_slices(group_id)
        except Refused as refused:
            code = translate_coordinator_code(refused.code)
        results.append({"group_id": group_id, "error_code": code})
        yield
    return results


def build_error_response(
    request: DeleteGroupsRequest, context: RequestContext[DeleteGroupsResponse], code: Code
) -> DeleteGroupsResponse:
    return context.build_response(
        results=[
            {"group_id": group_id, "error_code": code}
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
