"""Run a member on a host: start it, kill it, and start it again with the same instance id.

A new life knows nothing of the lives before but what it has kept.
"""

from __future__ import annotations

from random import Random

from tests.simulation.groups.members.classic import ClassicMember
from tests.simulation.groups.members.consumer import ConsumerMember
from tests.simulation.groups.members.member import Interest, Member, Profile
from tests.simulation.groups.world import GroupWorld


class Host:
    """Holds a host's `lives`, of which the last is the present one if it isn't over."""

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
        """Return the member that runs there now."""
        return self.lives[-1] if self.lives and not self.lives[-1].is_over else None

    def start(self) -> None:
        """Start another life, of whose start a running one isn't told.

        One whose instance is taken over is fenced, another is killed.
        """
        before = self.lives[-1] if self.lives else None
        for life in self.lives:
            if not life.is_over and not self._takes_over(life):
                life.kill()
        number = len(self.lives) + 1
        name = f"{self.profile.name}#{number}"
        random = Random(f"{self._seed} {name}")
        kind = ConsumerMember if self.profile.is_consumer else ClassicMember
        member = kind(self.world, self.profile, name, self.interest, random)
        is_static = self.profile.instance_id is not None
        if is_static and isinstance(member, ClassicMember) and before is not None:
            member.take_over(before if isinstance(before, ClassicMember) else None)
        self.lives.append(member)

    def switch(self) -> None:
        """Start a new life now that speaks the other protocol."""
        self.profile = self.profile.switched()
        self.start()

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
        """Let the last dead member finish its request, and resend one of the present one."""
        dead = [life for life in self.lives if life.is_over and life.member_id]
        if dead:
            self.world.spawn(dead[-1].haunt())
        if self.member is not None:
            self.world.spawn(self.member.echo())

    def _takes_over(self, member: Member) -> bool:
        """Return whether its instance may be taken over alive: not from consumer to consumer."""
        is_handed_over = not (member.profile.is_consumer and self.profile.is_consumer)
        return self.profile.instance_id is not None and is_handed_over
