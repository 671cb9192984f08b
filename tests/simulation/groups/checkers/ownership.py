"""Check that no partition has two owners in one generation of a classic group.

Every member is handed what one leader brought for this generation, and no two of them the same
partition.

What a leader brought is a candidate until an answer shows it: its request may have been refused, or
lost in a crash. From the first answer on, all others of the generation must be of the same one. A
static member that comes back is the same member under another id.

What a cooperative leader brings gives nobody what another member has said, when it joined, that it
still owns.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.groups.checkers.checker import JOIN_GROUP, SYNC_GROUP, GroupChecker
from tests.simulation.groups.checkers.instances import Instances
from tests.simulation.groups.members.assigning import (
    COOPERATIVE,
    Subscription,
    decode_assignment,
    decode_subscription,
)
from tests.simulation.ledger import Place
from tests.simulation.network import Request

Assignments = dict[str, frozenset[Place]]  # by member


class Ownership(GroupChecker):
    name: ClassVar[str] = "ownership"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._instances = Instances()
        self._brought: dict[tuple[str, int], list[Assignments]] = {}
        self._claims: dict[tuple[str, int], dict[str, Subscription]] = {}
        self._owners: dict[tuple[str, int], dict[Place, str]] = {}

    def handle_request(self, request: Request) -> None:
        given = request.given
        if request.api_key == SYNC_GROUP and given["assignments"]:
            generation = given["group_id"], given["generation_id"]
            shares = {
                each["member_id"]: decode_assignment(each["assignment"])
                for each in given["assignments"]
            }
            self._check_claims(generation, shares)
            self._brought.setdefault(generation, []).append(
                {
                    self._instances.instance_of(member_id): share
                    for member_id, share in shares.items()
                }
            )

    def handle_action(self) -> None:
        """Forget the generations of groups that are deleted or converted, which may come again."""
        everything: list[dict[tuple[str, int], Any]] = [self._brought, self._owners, self._claims]
        for kept in everything:
            for key in tuple(kept):
                if self.is_of_consumers(key[0]) or self.is_gone(key[0]):
                    del kept[key]

    def handle_response(self, request: Request, response: Any) -> None:
        self._instances.handle_response(request, response)
        given = request.given
        is_asked_of_members = request.api_key in (JOIN_GROUP, SYNC_GROUP)
        if not is_asked_of_members or response.error_code != 0:
            return
        group_id = given["group_id"]
        if self.is_of_consumers(group_id):  # see `revocation`
            return
        if request.api_key == SYNC_GROUP:
            self._handed(
                (group_id, given["generation_id"]),
                self._instances.instance_of(given["member_id"]),
                decode_assignment(response.assignment),
            )
        elif response.members and response.protocol_name == COOPERATIVE:
            self._claims[group_id, response.generation_id] = {
                each.member_id: decode_subscription(each.metadata) for each in response.members
            }

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

    def _check_claims(self, generation: tuple[str, int], shares: Assignments) -> None:
        claims = self._claims.pop(generation, {})
        newest = max((claim.generation for claim in claims.values()), default=-1)
        for owner, claim in claims.items():
            for member, share in shares.items():
                both = share & claim.owned
                if both and member != owner and claim.generation == newest:
                    self.violated(
                        f"{generation}: the leader gives {sorted(both)} to {member}, and {owner} "
                        "has it"
                    )
