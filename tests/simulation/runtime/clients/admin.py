"""Stand in for confluent-kafka's AdminClient, whose results a thread waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, TopicCollection, TopicPartition

from coordinator.errors import Code
from tests.simulation.runtime.clients.client import UNKNOWN, Client, Failed, as_metadata, raised
from tests.simulation.runtime.process import Process

LIST_GROUPS, CREATE_TOPICS, DELETE_RECORDS, DESCRIBE_CONFIGS = 16, 19, 21, 32
INCREMENTAL_ALTER_CONFIGS = 44
SPECIAL = {"EarliestSpec": -2, "LatestSpec": -1, "MaxTimestampSpec": -3}


class Answer:
    """Stands in for the future of one request of the AdminClient."""

    def __init__(self, process: Process, work: Coroutine[Any, Any, Any]) -> None:
        self._process = process
        self._task = process.begin(work)
        self._task.add_done_callback(_look)  # nobody may ask for the result

    def result(self, timeout: float | None = None) -> Any:
        if not self._process.wait_for(self._task, timeout):
            self._task.cancel()
            raise raised(KafkaError._TIMED_OUT, "no answer", retriable=True)
        try:
            return self._task.result()
        except Failed as error:
            raise raised(int(error.code), error.code.name) from None


class SimAdminClient:
    """Stands in for confluent-kafka's AdminClient on the simulated network."""

    def __init__(self, process: Process, settings: dict[str, Any]) -> None:
        self._client = Client(process, str(settings["client.id"]))
        self._process = process

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        topics = None if topic is None else [topic]
        return as_metadata(self._begin(self._client.metadata(topics)).result(timeout))

    def list_consumer_groups(self, **_: Any) -> Answer:
        return self._begin(self._groups())

    def describe_topics(self, topics: TopicCollection, **_: Any) -> dict[str, Answer]:
        return {name: self._begin(self._describe(name)) for name in topics.topic_names}

    def create_topics(self, topics: Iterable[Any], **_: Any) -> dict[str, Answer]:
        return {each.topic: self._begin(self._create(each)) for each in topics}

    def list_offsets(
        self,
        specs: Mapping[TopicPartition, Any],
        isolation_level: Any = IsolationLevel.READ_UNCOMMITTED,
        **_: Any,
    ) -> dict[TopicPartition, Answer]:
        isolation = 1 if isolation_level == IsolationLevel.READ_COMMITTED else 0
        return {
            asked: self._begin(self._offset(asked, spec, isolation))
            for asked, spec in specs.items()
        }

    def delete_records(
        self, partitions: Collection[TopicPartition], **_: Any
    ) -> dict[TopicPartition, Answer]:
        return {each: self._begin(self._delete_records(each)) for each in partitions}

    def describe_configs(self, resources: Iterable[Any], **_: Any) -> dict[Any, Answer]:
        return {each: self._begin(self._configs(each)) for each in resources}

    def incremental_alter_configs(self, resources: Iterable[Any], **_: Any) -> dict[Any, Answer]:
        return {each: self._begin(self._alter(each)) for each in resources}

    def poll(self, timeout: float = 0) -> int:
        self._process.yield_turn()
        return 0

    def _begin(self, work: Coroutine[Any, Any, Any]) -> Answer:
        try:
            self._process.yield_turn()
            return Answer(self._process, work)
        except BaseException:
            work.close()  # the process has died, and nobody will await it
            raise

    async def _groups(self) -> Any:
        answer = await self._client.send_request(
            LIST_GROUPS, 4, {"states_filter": ()}, lambda answer: answer.error_code
        )
        valid = [SimpleNamespace(group_id=str(group.group_id)) for group in answer.groups]
        return SimpleNamespace(valid=valid, errors=[])

    async def _describe(self, name: str) -> Any:
        found = await self._client.metadata([name])
        if name not in found:
            raise Failed(Code.UNKNOWN_TOPIC_OR_PARTITION)
        return SimpleNamespace(name=name, topic_id=found[name].topic_id, authorized_operations=None)

    async def _create(self, topic: Any) -> None:
        wanted = {
            "name": topic.topic,
            "num_partitions": topic.num_partitions,
            "replication_factor": topic.replication_factor,
            "assignments": (),
            "configs": [{"name": n, "value": str(v)} for n, v in (topic.config or {}).items()],
        }
        given = {"topics": [wanted], "timeout": 1_000, "validate_only": False}
        await self._client.send_request(
            CREATE_TOPICS, 4, given, lambda answer: answer.topics[0].error_code
        )

    async def _offset(self, asked: TopicPartition, spec: Any, isolation: int) -> Any:
        name = type(spec).__name__
        timestamp = SPECIAL[name] if name in SPECIAL else spec.timestamp  # noqa: SIM401  lacks it
        found = await self._client.list_offset(asked, timestamp, isolation)
        return SimpleNamespace(offset=found.offset, timestamp=found.timestamp)

    async def _delete_records(self, asked: TopicPartition) -> Any:
        partition = {"partition_index": asked.partition, "offset": asked.offset}
        given = {
            "topics": [{"name": asked.topic, "partitions": [partition]}],
            "timeout": 1_000,
        }
        answer = await self._client.send_request(
            DELETE_RECORDS,
            2,
            given,
            lambda answer: answer.topics[0].partitions[0].error_code,
            retries=UNKNOWN,
        )
        return SimpleNamespace(low_watermark=answer.topics[0].partitions[0].low_watermark)

    async def _configs(self, resource: Any) -> dict[str, Any]:
        kind = getattr(resource.restype, "value", resource.restype)
        wanted = {"resource_type": kind, "resource_name": resource.name, "configuration_keys": None}
        given = {
            "resources": [wanted],
            "include_synonyms": False,
            "include_documentation": False,
        }
        answer = await self._client.send_request(
            DESCRIBE_CONFIGS, 1, given, lambda answer: answer.results[0].error_code, retries=UNKNOWN
        )
        return {
            each.name: SimpleNamespace(name=each.name, value=each.value)
            for each in answer.results[0].configs
        }

    async def _alter(self, resource: Any) -> None:
        changes = [
            {
                "name": each.name,
                "config_operation": getattr(each.incremental_operation, "value", 0),
                "value": each.value,
            }
            for each in resource.incremental_configs
        ]
        kind = getattr(resource.restype, "value", resource.restype)
        wanted = {"resource_type": kind, "resource_name": resource.name, "configs": changes}
        given = {"resources": [wanted], "validate_only": False}
        await self._client.send_request(
            INCREMENTAL_ALTER_CONFIGS, 1, given, lambda answer: answer.responses[0].error_code
        )


def _look(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
