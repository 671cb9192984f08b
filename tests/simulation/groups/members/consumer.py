"""Simulate a member of a consumer group (KIP-848) as the Java client is.

It sends a heartbeat at once when it has something to report, else at the broker's interval. Its
assignment comes in the responses; it revokes what is not in it, then takes what is new, then
reports that. After a lost response it sends all fields once more. A fenced member drops all and
joins anew, at epoch 0, under the id that it has made up for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from coordinator.errors import Code
from tests.simulation.groups.members.member import METADATA, RETRIABLE, RETRY_MS, Interest, Member
from tests.simulation.ledger import Place
from tests.simulation.wire import to_ms

CONSUMER_GROUP_HEARTBEAT = 68
JOINING, LEAVING, AWAY = 0, -1, -2
REJOIN = frozenset({Code.FENCED_MEMBER_EPOCH, Code.UNKNOWN_MEMBER_ID, Code.GROUP_ID_NOT_FOUND})
Part = tuple[UUID, int]


class ConsumerMember(Member):
    """Represents a consumer that reports `parts` as owned, and has positions for `owned`."""

    _told: tuple[Interest, frozenset[Part]] | None = None  # None: all fields are to be sent
    _target: frozenset[Part] = frozenset()

    @property
    def parts(self) -> frozenset[Part]:
        return frozenset(self._places)

    def is_steady(self, topics: Mapping[str, int]) -> bool:
        return (
            self.epoch > JOINING
            and self._told == (self.interest, self.parts)
            and self.parts == self._target
            and set(self._places.values()) == self.owned.keys()
        )

    async def live(self) -> None:
        self.member_id = self.name
        self._places: dict[Part, Place] = {}
        self._names: dict[UUID, str] = {}
        self.epoch = JOINING
        while not self.is_leaving:
            answer = await self._heartbeat()
            if answer is None or answer.error_code in RETRIABLE:
                self._told = None
                await self.pause_for(RETRY_MS)
                continue
            code = Code(answer.error_code)
            if code in REJOIN:
                self._lose()
            elif code is Code.UNRELEASED_INSTANCE_ID:  # until the one before is given up
                await self.pause_for(10 * RETRY_MS)
            elif code is Code.NONE:
                await self._follow(answer)
            else:
                self._lose()
                return
        await self._leave()

    async def haunt(self) -> None:
        await super().haunt()
        self._told = None
        if self.epoch > JOINING:
            await self._heartbeat()

    # Heartbeats

    async def _heartbeat(self) -> Any | None:
        """Send a heartbeat with all that has changed; return the response."""
        interest, parts = self.interest, self.parts
        given = self._request(self.epoch)
        if self.epoch == JOINING:
            parts = frozenset()
        if self._told is None or self.epoch == JOINING:
            given["rebalance_timeout"] = self.profile.rebalance_timeout_ms
        if self._told is None or self._told[0] != interest:
            given |= _subscription(interest)
        if self._told is None or self._told[1] != parts:
            given["topic_partitions"] = _by_id(parts)
        answer = await self.send_request(CONSUMER_GROUP_HEARTBEAT, 1, given)
        if answer is not None and answer.error_code == Code.NONE:
            self._told = interest, parts
        return answer

    def _request(self, epoch: int) -> dict[str, Any]:
        return {
            "group_id": self.profile.group_id,
            "member_id": self.member_id,
            "member_epoch": epoch,
            "instance_id": self.profile.instance_id,
            "rack_id": None,
            "rebalance_timeout": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": None,
        }

    async def _follow(self, answer: Any) -> None:
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self._target = frozenset(
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )
        await self._reconcile()
        if self.random.random() < 0.3:
            await self.commit()
        if self._told == (self.interest, self.parts):
            await self.pause_for(to_ms(answer.heartbeat_interval) * self.random.uniform(0.9, 1.0))

    async def _reconcile(self) -> None:
        gone = self.parts - self._target
        if gone:
            await self.commit()
            await self.pause_for(self.random.choice((0, 0, 50, 900)))  # while it finishes with them
            if self.random.random() < 0.3:  # the rest after these are reported
                gone = frozenset(sorted(gone)[: len(gone) // 2 + 1])
            for part in gone:
                self.owned.pop(self._places.pop(part), None)
            if self.parts - self._target:
                return
        added = self._target - self.parts
        if {topic_id for topic_id, _ in added} - self._names.keys():
            await self._look_up()
        for topic_id, index in sorted(added):
            if topic_id in self._names:
                self._places[topic_id, index] = (self._names[topic_id], index)
        unread = set(self._places.values()) - self.owned.keys()
        if unread:
            await self.own(unread, self.epoch)

    async def _look_up(self) -> None:
        given = {
            "topics": None,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": False,
        }
        answer = await self.send_request(METADATA, 12, given)
        if answer is not None:
            self._names = {topic.topic_id: topic.name for topic in answer.topics}

    # Leaving

    def _lose(self) -> None:
        """Drop the partitions, which another member may own by now."""
        self.owned.clear()
        self._places.clear()
        self._target = frozenset()
        self._told = None
        self.epoch = JOINING

    async def _leave(self) -> None:
        """Leave the group; a static member says that it will be back."""
        if self.epoch > JOINING:
            await self.commit()
            self._lose()
            epoch = LEAVING if self.profile.instance_id is None else AWAY
            await self.send_request(CONSUMER_GROUP_HEARTBEAT, 1, self._request(epoch))


def _subscription(interest: Interest) -> dict[str, Any]:
    """Return the fields of a subscription, of which an empty one replaces the former other one."""
    if interest.prefix is None:
        return {"subscribed_topic_names": interest.topics, "subscribed_topic_regex": ""}
    return {"subscribed_topic_names": (), "subscribed_topic_regex": f"{interest.prefix}.*"}


def _by_id(parts: frozenset[Part]) -> list[dict[str, Any]]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(parts):
        topics.setdefault(topic_id, []).append(index)
    return [{"topic_id": topic_id, "partitions": indexes} for topic_id, indexes in topics.items()]
