"""Check that acknowledged commits stay committed, exactly, and refused ones never show.

A commit stays until a later commit, its deletion, or its expiry; what was refused, or never sent,
shows neither to members nor in the state, after a restart neither.

A commit whose response was lost, because the broker crashed meanwhile, may be there or not;
so may what was being deleted then, or when the disk failed. Offsets of a deleted topic are gone
before there is another topic of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar
from uuid import UUID

from coordinator.errors import Code
from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.groups.checkers.checker import (
    DELETE_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    GroupChecker,
)
from tests.simulation.groups.scenario import DAYS_KEPT, RETENTION_MS
from tests.simulation.network import Request
from tests.simulation.steps import DAY_MS

Key = tuple[str, str, int]  # group, topic, partition
Value = tuple[int, str]  # offset and metadata
NOTHING: Value = (-1, "")
# Of a deletion: nothing was done.
UNTOUCHED = frozenset({Code.NON_EMPTY_GROUP, Code.GROUP_ID_NOT_FOUND})


class Commits(GroupChecker):
    name: ClassVar[str] = "commits"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._committed: dict[Key, Value] = {}
        self._committed_ms: dict[Key, float] = {}
        self._unknown: dict[Request, dict[Key, Value]] = {}  # not answered yet
        self._deleting: dict[Request, list[Key]] = {}
        self._may_be_gone: set[Key] = set()
        self._topics: set[UUID] = set()

    def handle_request(self, request: Request) -> None:
        if request.api_key == OFFSET_COMMIT:
            self._unknown[request] = dict(_wanted(request.given))
        elif request.api_key == OFFSET_DELETE:
            given = request.given
            self._deleting[request] = [
                (given["group_id"], topic["name"], each["partition_index"])
                for topic in given["topics"]
                for each in topic["partitions"]
            ]
        elif request.api_key == DELETE_GROUPS:
            names = request.given["groups_names"]
            self._deleting[request] = [key for key in self._committed if key[0] in names]

    def handle_response(self, request: Request, response: Any) -> None:
        match request.api_key:
            case api if api == OFFSET_COMMIT:
                self._answer_commit(request, response)
            case api if api == OFFSET_FETCH:
                self._answer_fetch(response)
            case api if api == OFFSET_DELETE:
                keys = self._deleting.pop(request)
                codes = [each.error_code for topic in response.topics for each in topic.partitions]
                if response.error_code == 0:
                    self._deleted([k for k, code in zip(keys, codes, strict=True) if code == 0])
                elif response.error_code not in UNTOUCHED:
                    self._may_be_gone.update(keys)
            case api if api == DELETE_GROUPS:
                keys = self._deleting.pop(request)
                [result] = response.results
                if result.error_code == 0:
                    self._deleted(keys)
                elif result.error_code not in UNTOUCHED:
                    self._may_be_gone.update(keys)

    def handle_action(self) -> None:
        present = {topic.id for topic in self.world.broker.topics}
        if present != self._topics:
            self._topics = present
            for key in [key for key in self._committed if not self._is_there(key)]:
                del self._committed[key]

    def handle_load(self) -> None:
        """Expect that requests in process at the crash may have taken effect."""
        actual = self._actual()
        for wanted in self._unknown.values():
            for key, value in wanted.items():
                if actual.get(key) == value:
                    self._commit(key, value)
        self._unknown.clear()
        for keys in self._deleting.values():
            self._may_be_gone.update(keys)
        self._deleting.clear()
        self._topics = set()
        self.handle_action()
        self._check(actual)

    def run_expensive_checks(self) -> None:
        self._check(self._actual())

    def check_at_rest(self) -> None:
        self.run_expensive_checks()

    # Responses

    def _answer_commit(self, request: Request, response: Any) -> None:
        wanted = self._unknown.pop(request)
        for topic in response.topics:
            for found in topic.partitions:
                key = request.given["group_id"], topic.name, found.partition_index
                if found.error_code == 0:
                    self._commit(key, wanted[key])

    def _answer_fetch(self, response: Any) -> None:
        [group] = response.groups
        for topic in group.topics if group.error_code == 0 else ():
            for found in topic.partitions:
                if found.error_code == 0:
                    key = group.group_id, topic.name, found.partition_index
                    value = found.committed_offset, found.metadata or ""
                    if value != NOTHING or not self._may_end(key):
                        self._compare(key, value)

    def _commit(self, key: Key, value: Value) -> None:
        self._committed[key] = value
        self._committed_ms[key] = self.world.loop.now_ms()
        self._may_be_gone.discard(key)

    def _deleted(self, keys: list[Key]) -> None:
        for key in keys:
            self._committed.pop(key, None)

    # Invariants

    def _check(self, actual: dict[Key, Value]) -> None:
        for key, value in sorted(actual.items()):
            self._compare(key, value)
        for key in sorted(self._committed):
            if key not in actual and self._leads(key[0]):
                if not self._may_end(key):
                    self.violated(f"{key}: {self._committed[key]} was committed, nothing is there")
                del self._committed[key]

    def _compare(self, key: Key, value: Value) -> None:
        committed = self._committed.get(key, NOTHING)
        if value != committed and self._is_there(key):
            self.violated(f"{key}: {committed} was committed, {value} is there")

    def _may_end(self, key: Key) -> bool:
        """Return whether its deletion was interrupted, or it is old enough to expire."""
        age_ms = self.world.loop.now_ms() - self._committed_ms.get(key, 0)
        kept_ms = DAYS_KEPT * DAY_MS if self.world.setting.days else RETENTION_MS
        return key in self._may_be_gone or age_ms >= kept_ms

    def _actual(self) -> dict[Key, Value]:
        return {
            (group_id, *place): (kept.offset, kept.metadata)
            for shard in self.world.broker.coordinators.groups.shards
            for group_id, group in shard.state.offsets.committed.items()
            for place, kept in group.items()
        }

    def _leads(self, group_id: str) -> bool:
        return self.world.shard(group_id).log.coordinator_state is CoordinatorState.ACTIVE

    def _is_there(self, key: Key) -> bool:
        return key[2] < self.world.partitions_of(key[1])


def _wanted(given: dict[str, Any]) -> Iterator[tuple[Key, Value]]:
    for topic in given["topics"]:
        for partition in topic["partitions"]:
            yield (
                (given["group_id"], topic["name"], partition["partition_index"]),
                (partition["committed_offset"], partition["committed_metadata"]),
            )
