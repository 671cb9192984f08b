"""What was acknowledged as committed is committed, to the letter, until a later commit or the end
of the topic; what was refused, or never asked for, never shows: not to members, and not in the
state, after a restart neither.

A commit that nobody was told of, because the broker went in the middle of it, may be there or not.
Offsets of a topic that was deleted while nobody led the group here, or the disk failed, may stay:
in Kafka they do.
"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from coordinator.shard.life import Life
from tests.simulation.groups.checkers.checker import OFFSET_COMMIT, OFFSET_FETCH, GroupChecker
from tests.simulation.network import Request

Key = tuple[str, str, int]  # group, topic, partition
Value = tuple[int, str]  # offset and metadata


class Commits(GroupChecker):
    name: ClassVar[str] = "commits"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._committed: dict[Key, Value] = {}
        self._unknown: dict[Request, dict[Key, Value]] = {}
        self._topics: set[UUID] = set()
        self._left: dict[Key, Value] = {}  # behind a topic that was deleted

    def asked(self, request: Request) -> None:
        if request.api_key == OFFSET_COMMIT:
            self._unknown[request] = dict(_wanted(request.given))

    def answered(self, request: Request, response: Any) -> None:
        if request.api_key == OFFSET_COMMIT:
            wanted = self._unknown.pop(request)
            for topic in response.topics:
                for found in topic.partitions:
                    key = request.given["group_id"], topic.name, found.partition_index
                    if found.error_code == 0:
                        self._committed[key] = wanted[key]
        elif request.api_key == OFFSET_FETCH:
            [group] = response.groups
            for topic in group.topics if group.error_code == 0 else ():
                for found in topic.partitions:
                    if found.error_code == 0:
                        key = group.group_id, topic.name, found.partition_index
                        self._compare(key, (found.committed_offset, found.metadata or ""))

    def acted(self) -> None:
        present = {topic.id for topic in self.world.broker.topics}
        if present != self._topics:
            self._topics = present
            actual = self._actual()
            for key in [key for key in self._committed if not self._is_there(key)]:
                self._left[key] = self._committed.pop(key)
            self._left = {
                key: value
                for key, value in self._left.items()
                if key in actual or not self._leads(key[0])
            }

    def loaded(self) -> None:
        """What was under way when the broker went may have been done."""
        actual = self._actual()
        for wanted in self._unknown.values():
            for key, value in wanted.items():
                if actual.get(key) == value:
                    self._committed[key] = value
        self._unknown.clear()
        self._topics = set()
        self.acted()
        self._check(actual)

    def looked_at(self) -> None:
        self._check(self._actual())

    def ended(self) -> None:
        self.looked_at()

    def _check(self, actual: dict[Key, Value]) -> None:
        for key, value in sorted(actual.items()):
            self._compare(key, value)
        for key in sorted(self._committed):
            if key not in actual and self._leads(key[0]):
                self.violated(f"{key}: {self._committed[key]} was committed, nothing is there")

    def _compare(self, key: Key, value: Value) -> None:
        committed = self._committed.get(key, (-1, ""))
        is_left = key not in self._committed and value == self._left.get(key)
        if value != committed and not is_left and self._is_there(key):
            self.violated(f"{key}: {committed} was committed, {value} is there")

    def _actual(self) -> dict[Key, Value]:
        return {
            (group_id, *place): (kept.offset, kept.metadata)
            for shard in self.world.broker.coordinators.groups.shards
            for group_id, group in shard.state.offsets.committed.items()
            for place, kept in group.items()
        }

    def _leads(self, group_id: str) -> bool:
        return self.world.shard(group_id).log.life is Life.ACTIVE

    def _is_there(self, key: Key) -> bool:
        return key[2] < self.world.partitions_of(key[1])


def _wanted(given: dict[str, Any]) -> Any:
    for topic in given["topics"]:
        for partition in topic["partitions"]:
            yield (
                (given["group_id"], topic["name"], partition["partition_index"]),
                (partition["committed_offset"], partition["committed_metadata"]),
            )
