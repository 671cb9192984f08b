"""Map member ids to instances: a static member that comes back has another id."""

from __future__ import annotations

from typing import Any

from tests.simulation.groups.checkers.checker import JOIN_GROUP
from tests.simulation.network import Request


class Instances:
    """Maps member ids to instances from JoinGroup responses, to the member and to the leader."""

    def __init__(self) -> None:
        self._by_member_id: dict[str, str] = {}

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key != JOIN_GROUP or response.error_code != 0:
            return
        if request.given["group_instance_id"]:
            self._by_member_id[response.member_id] = request.given["group_instance_id"]
        for each in response.members:  # of some the answer is lost before it is given
            if getattr(each, "group_instance_id", None):
                self._by_member_id[each.member_id] = each.group_instance_id

    def instance_of(self, member_id: str) -> str:
        return self._by_member_id.get(member_id, member_id)
