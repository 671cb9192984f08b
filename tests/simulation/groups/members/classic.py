"""Simulate a member of a classic group as the Java client is, eager or cooperative (KIP-429).

It joins, syncs, and heartbeats until a response, or a changed topic, makes it join again. The
leader assigns, and watches the topics; whoever subscribes by a prefix watches them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.assignors.sticky import encode_user_data
from coordinator.errors import Code
from tests.simulation.groups.members.assigning import (
    STICKY,
    Subscription,
    assigned,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tests.simulation.groups.members.member import RETRIABLE, RETRY_MS, Member
from tests.simulation.ledger import Place

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
FATAL = frozenset(
    {
        Code.FENCED_INSTANCE_ID,
        Code.GROUP_MAX_SIZE_REACHED,
    }
)


class ClassicMember(Member):
    """Represents a classic member that joins, syncs, heartbeats, and leads if it is told to."""

    # The input of its assignment: its own subscription, and if it leads, the topics that all are
    # subscribed to, with their partitions. None: unknown.
    _names: tuple[str, ...] | None = None
    _assigned_from: dict[str, int] | None = None

    _joined_with: tuple[str, ...] = ()
    _assignment: frozenset[Place] = frozenset()
    _last: tuple[list[Place], int] | None = None  # the assignment before, and its generation
    _chosen = ""  # the protocol that all have in common
    _is_heir = False
    _is_leader = False
    _has_synced = False

    def take_over(self, before: ClassicMember | None) -> None:
        """Take over the instance of the former life, and rejoin if its assignment is outdated.

        The new life is handed the assignment if the session still goes on: whatever that was made
        from, and is not so any more, is reported by joining once more. The broker doesn't look (in
        Kafka neither). None: a consumer was the one before, and some time a classic member may have
        been.
        """
        self._names = before._names if before is not None else None
        self._assigned_from = before._assigned_from if before is not None else None
        self._is_heir = True

    @property
    def leads(self) -> bool:
        """Return whether it leads the group, as far as it knows."""
        return self._is_leader

    @property
    def is_cooperative(self) -> bool:
        return self.profile.protocol == "cooperative"

    def is_steady(self, topics: Mapping[str, int]) -> bool:
        return (
            self._has_synced
            and self.owned.keys() == self._assignment
            and self.interest.names(topics) == self._joined_with
            and not self._is_behind(topics)
        )

    async def live(self) -> None:
        while not self.is_leaving:
            await self._let_go()
            code = await self._join()
            if code is Code.NONE:
                code = await self._work()
            self._has_synced = False
            if code in FATAL:
                self.owned.clear()
                return
            if code in (Code.UNKNOWN_MEMBER_ID, Code.ILLEGAL_GENERATION):
                self._lose(code)
            elif code is not Code.REBALANCE_IN_PROGRESS:
                await self.pause_for(RETRY_MS)
        await self._leave()

    async def haunt(self) -> None:
        await super().haunt()
        await self._heartbeat()
        await self._sync({self.member_id: [("haunted", 0)]} if self._is_leader else {})

    # Joining

    async def _let_go(self) -> None:
        """Drop the partitions before a join, during which an eager member owns nothing."""
        if self.owned:
            await self.commit()
        if not self.is_cooperative:
            self.owned.clear()

    async def _join(self) -> Code | None:
        """Join and sync; return NONE when it has what the leader assigned to it."""
        self._joined_with = self._names or () if self._is_heir else await self._wanted()
        self._is_heir = False
        made_from, self._names, self._assigned_from = self._assigned_from, None, None
        answer = await self._ask_to_join()
        if answer is not None and answer.error_code == Code.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            answer = await self._ask_to_join()
        if answer is None:
            return None
        if answer.error_code != Code.NONE:
            return Code(answer.error_code)
        self.member_id, self.epoch = answer.member_id, answer.generation_id
        self._chosen = answer.protocol_name
        self._is_leader = answer.leader == self.member_id
        shares: dict[str, list[Place]] = {}
        skips = getattr(answer, "skip_assignment", False)
        if self._is_leader and not skips:
            shares, made_from = await self._assign(answer.members)
        code = await self._sync(shares)
        if code is not Code.NONE:
            return code
        self._names, self._assigned_from = self._joined_with, made_from
        return await self._take()

    async def _wanted(self) -> tuple[str, ...]:
        counts = await self.topics() if self.interest.prefix is not None else {}
        return self.interest.names(counts)

    async def _ask_to_join(self) -> Any:
        owned = frozenset(self.owned) if self.is_cooperative else frozenset()
        profile = self.profile
        protocols = []
        for name in profile.assignors:
            data = encode_user_data(*self._last) if name == STICKY and self._last else None
            generation = self.epoch if owned else -1
            said = Subscription(self._joined_with, data, owned, generation)
            protocols.append({"name": name, "metadata": encode_subscription(said)})
        given = {
            "group_id": profile.group_id,
            "session_timeout": profile.session_timeout_ms,
            "rebalance_timeout": profile.rebalance_timeout_ms,
            "member_id": self.member_id,
            "group_instance_id": profile.instance_id,
            "protocol_type": "consumer",
            "protocols": protocols,
            "reason": None,
        }
        patience_ms = profile.rebalance_timeout_ms + 5_000
        return await self.send_request(JOIN_GROUP, profile.version, given, patience_ms)

    async def _assign(self, members: Any) -> tuple[dict[str, list[Place]], dict[str, int]]:
        """Return the assignment of each member, and the topics that it is made from."""
        counts = await self.topics()
        wanted = {each.member_id: decode_subscription(each.metadata) for each in members}
        topics = {topic for each in wanted.values() for topic in each.topics}
        present = {topic: counts[topic] for topic in topics if topic in counts}
        shares = assigned(self._chosen, wanted, present)
        return shares, {topic: counts.get(topic, 0) for topic in topics}

    async def _sync(self, shares: dict[str, list[Place]]) -> Code | None:
        given = {
            "group_id": self.profile.group_id,
            "generation_id": self.epoch,
            "member_id": self.member_id,
            "group_instance_id": self.profile.instance_id,
            "protocol_type": "consumer",
            "protocol_name": self._chosen,
            "assignments": [
                {"member_id": member, "assignment": encode_assignment(places)}
                for member, places in sorted(shares.items())
            ],
        }
        version = 5 if self.profile.version >= 7 else 3
        patience_ms = self.profile.rebalance_timeout_ms + 5_000
        answer = await self.send_request(SYNC_GROUP, version, given, patience_ms)
        if answer is None:
            return None
        if answer.error_code == Code.NONE:
            self._assignment = decode_assignment(answer.assignment)
            self._last = sorted(self._assignment), self.epoch
        return Code(answer.error_code)

    async def _take(self) -> Code | None:
        """Apply the assignment of SyncGroup.

        A cooperative member that has to revoke something does so, and joins again, so that somebody
        else can have it.
        """
        gone = self.owned.keys() - self._assignment
        if gone:
            await self.commit()
            for place in gone:
                del self.owned[place]
        while added := self._assignment - self.owned.keys():
            code = await self.own(added, -1)
            if code not in RETRIABLE and code not in (None, Code.NONE):
                raise AssertionError(f"{self.name}: OffsetFetch is refused: {code}")
            if code is not Code.NONE:
                await self.pause_for(RETRY_MS)
        self._has_synced = True
        return Code.REBALANCE_IN_PROGRESS if gone else Code.NONE

    # Heartbeats and commits

    async def _work(self) -> Code | None:
        """Heartbeat and commit; return the code for which it has to join again, or to go."""
        code: Code | None = Code.NONE
        while not self.is_leaving:
            rest_ms = self.profile.heartbeat_ms * self.random.uniform(0.9, 1.1)
            await self.pause_for(RETRY_MS if code is None else rest_ms)
            code = await self.commit() if self.random.random() < 0.3 else Code.NONE
            if code is Code.NONE:
                if await self._has_to_join_again():
                    return Code.REBALANCE_IN_PROGRESS
                code = await self._heartbeat()
            if code is not None and code is not Code.NONE and code not in RETRIABLE:
                return code
        return Code.NONE

    async def _has_to_join_again(self) -> bool:
        if await self._wanted() != self._joined_with:
            return True
        return self._is_leader and self._is_behind(await self.topics())

    def _is_behind(self, topics: Mapping[str, int]) -> bool:
        """Return whether the assignment is not made from these topics, or from unknown ones."""
        known = self._assigned_from
        if not self._is_leader:
            return False
        return known is None or any(topics.get(name, 0) != count for name, count in known.items())

    async def _heartbeat(self) -> Code | None:
        given = {
            "group_id": self.profile.group_id,
            "generation_id": self.epoch,
            "member_id": self.member_id,
            "group_instance_id": self.profile.instance_id,
        }
        answer = await self.send_request(HEARTBEAT, 4, given)
        return None if answer is None else Code(answer.error_code)

    # Leaving

    def _lose(self, code: Code) -> None:
        """Drop the partitions, which another member may own by now."""
        self.owned.clear()
        self.epoch = -1
        if code is Code.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    async def _leave(self) -> None:
        """Leave the group as the Java client does, or remove a static member by its instance id."""
        if self.owned:
            await self.commit()
        self.owned.clear()
        if not self.member_id:
            return
        instance_id = self.profile.instance_id
        member = {
            "member_id": "" if instance_id else self.member_id,
            "group_instance_id": instance_id,
            "reason": None,
        }
        await self.send_request(
            LEAVE_GROUP, 5, {"group_id": self.profile.group_id, "members": [member]}
        )
