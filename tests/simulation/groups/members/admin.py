"""Administrate topics, groups and offsets with one request after the other."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

from coordinator.errors import Code
from tests.simulation.clients.session import GaveUp, Session
from tests.simulation.groups.world import GroupWorld

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, DELETE_GROUPS, OFFSET_DELETE = 19, 20, 37, 42, 47


class Admin:
    """Sends an administrator's requests, whose objects may exist already, or not."""

    def __init__(self, world: GroupWorld, seed: str) -> None:
        self.session = Session(world, "admin", Random(seed), world.setting.trouble)

    async def create(self, topic: str, partitions: int) -> None:
        wanted = {
            "name": topic,
            "num_partitions": partitions,
            "replication_factor": 1,
            "assignments": (),
            "configs": (),
        }
        await self._ask(CREATE_TOPICS, 7, {"topics": [wanted], "timeout": 1_000}, "topics")

    async def delete(self, topic: str) -> None:
        wanted = {"name": topic, "topic_id": None}
        given = {"topics": [wanted], "timeout": 1_000}
        await self._ask(DELETE_TOPICS, 6, given, "responses")

    async def enlarge(self, topic: str, partitions: int) -> None:
        wanted = {"name": topic, "count": partitions, "assignments": None}
        given = {"topics": [wanted], "timeout": 1_000, "validate_only": False}
        await self._ask(CREATE_PARTITIONS, 3, given, "results")

    async def delete_group(self, group_id: str) -> None:
        await self._ask(DELETE_GROUPS, 2, {"groups_names": [group_id]}, "results")

    async def delete_offsets(self, group_id: str, topic: str) -> None:
        partitions = [{"partition_index": index} for index in range(4)]
        given = {"group_id": group_id, "topics": [{"name": topic, "partitions": partitions}]}
        await self._ask(OFFSET_DELETE, 0, given, "topics")

    async def _ask(self, api_key: int, version: int, given: dict[str, Any], results: str) -> None:
        def code_of(answer: Any) -> int:
            failed = getattr(answer, "error_code", 0)  # of the request as a whole
            code = Code(failed or getattr(getattr(answer, results)[0], "error_code", 0))
            return 0 if code is Code.UNKNOWN_TOPIC_OR_PARTITION else code

        with suppress(GaveUp):
            await self.session.send_request(api_key, version, given, code_of)
