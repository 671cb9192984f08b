"""Never two owners of a partition in one generation: every member of a classic group is handed what
one leader brought for this generation, and no two of them the same partition.

What a leader brought is a candidate until an answer shows it: its request may have been refused, or
lost in a crash. From the first answer on, all others of the generation must be of the same one. A
static member that comes back is the same member under another id.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.groups.checkers.checker import JOIN_GROUP, SYNC_GROUP, GroupChecker
from tests.simulation.groups.members.assigning import decode_assignment
from tests.simulation.ledger import Place
from tests.simulation.network import Request

Assignments = dict[str, frozenset[Place]]  # by member


class Ownership(GroupChecker):
    name: ClassVar[str] = "ownership"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._instances: dict[str, str] = {}  # by member id
        self._brought: dict[tuple[str, int], list[Assignments]] = {}
        self._owners: dict[tuple[str, int], dict[Place, str]] = {}

    def asked(self, request: Request) -> None:
        given = request.given
        if request.api_key == SYNC_GROUP and given["assignments"]:
            generation = given["group_id"], given["generation_id"]
            self._brought.setdefault(generation, []).append(
                {
                    self._who(each["member_id"]): decode_assignment(each["assignment"])
                    for each in given["assignments"]
                }
            )

    def answered(self, request: Request, response: Any) -> None:
        given = request.given
        if request.api_key == JOIN_GROUP and response.error_code == 0:
            if given["group_instance_id"]:
                self._instances[response.member_id] = given["group_instance_id"]
            for each in response.members:  # of some the answer is lost before it is given
                if getattr(each, "group_instance_id", None):
                    self._instances[each.member_id] = each.group_instance_id
        if request.api_key == SYNC_GROUP and response.error_code == 0:
            assigned = decode_assignment(response.assignment)
            self._handed(
                (given["group_id"], given["generation_id"]),
                self._who(given["member_id"]),
                assigned,
            )

    def _handed(self, generation: tuple[str, int], member: str, assigned: frozenset[Place]) -> None:
        owners = self._owners.setdefault(generation, {})
        for place in sorted(assigned):
            owner = owners.setdefault(place, member)
            if owner != member:
                self.violated(f"{generation}: {place} is {owner}'s, and is given to {member}")
        candidates = self._brought.get(generation, [])
        left = [each for each in candidates if each.get(member, frozenset()) == assigned]
        if candidates and not left:
            self.violated(
                f"{generation}: {member} is given {sorted(assigned)}, and the leader brought "
                f"{[sorted(each.get(member, ())) for each in candidates]}"
            )
        self._brought[generation] = left

    def _who(self, member_id: str) -> str:
        return self._instances.get(member_id, member_id)
