"""Where a member lives: it is started, killed and started again, with the same instance id if it
has one, and knows nothing of the lives before but what it has kept."""

from __future__ import annotations

from random import Random

from tests.simulation.groups.members.classic import ClassicMember
from tests.simulation.groups.members.consumer import ConsumerMember
from tests.simulation.groups.members.member import Interest, Member, Profile
from tests.simulation.groups.world import GroupWorld


class Host:
    """`lives`: the last is the present one, if it isn't over."""

    def __init__(self, world: GroupWorld, profile: Profile, interest: Interest, seed: str) -> None:
        self.world = world
        self.profile = profile
        self.interest = interest
        self.lives: list[Member] = []
        self._seed = seed

    @property
    def group_id(self) -> str:
        return self.profile.group_id

    @property
    def member(self) -> Member | None:
        """The one that lives there now."""
        return self.lives[-1] if self.lives and not self.lives[-1].is_over else None

    def start(self) -> None:
        """Another life. Whoever still lives here is not told: one of the same instance is fenced,
        another is killed."""
        before = self.lives[-1] if self.lives else None
        if self.member is not None and not self._is_taken_over:
            self.member.kill()
        number = len(self.lives) + 1
        name = f"{self.profile.name}#{number}"
        random = Random(f"{self._seed} {name}")
        kind = ConsumerMember if self.profile.protocol == "consumer" else ClassicMember
        member = kind(self.world, self.profile, name, self.interest, random)
        is_static = self.profile.instance_id is not None
        if is_static and isinstance(before, ClassicMember) and isinstance(member, ClassicMember):
            member.inherit(before)
        self.lives.append(member)

    def kill(self) -> None:
        if self.member is not None:
            self.member.kill()

    def leave(self) -> None:
        if self.member is not None:
            self.member.leave()

    def want(self, interest: Interest) -> None:
        self.interest = interest
        if self.member is not None:
            self.member.want(interest)

    def hang(self, for_ms: float) -> None:
        if self.member is not None:
            self.member.hang(for_ms)

    def haunt(self) -> None:
        """The last one that was killed here, or fenced, does what it had begun; and what the
        present one did a while ago arrives once more."""
        dead = [life for life in self.lives if life.is_over and life.member_id]
        if dead:
            self.world.spawn(dead[-1].haunt())
        if self.member is not None:
            self.world.spawn(self.member.echo())

    @property
    def _is_taken_over(self) -> bool:
        return self.profile.instance_id is not None and self.profile.protocol != "consumer"
