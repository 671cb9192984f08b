"""Share what all clients have: a process, a connection, and requests that are retried."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from coordinator.errors import Code
from tests.simulation.loop import RequestFailure, Unanswered
from tests.simulation.runtime.process import Process

LIST_OFFSETS, METADATA = 2, 3
RETRY_MS = 100

RETRIABLE = frozenset(
    {
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.LEADER_NOT_AVAILABLE,
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.REQUEST_TIMED_OUT,
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.COORDINATOR_NOT_AVAILABLE,
        Code.NOT_COORDINATOR,
        Code.NOT_ENOUGH_REPLICAS,
        Code.CONCURRENT_TRANSACTIONS,
        Code.KAFKA_STORAGE_ERROR,
        Code.FENCED_LEADER_EPOCH,
        Code.UNKNOWN_LEADER_EPOCH,
    }
)
UNKNOWN = RETRIABLE - {Code.UNKNOWN_TOPIC_OR_PARTITION}
"""Retriable errors of reads, for which a missing topic is final."""


class Failed(RequestFailure):
    """Reports that a request was refused for good, with this code."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


def as_metadata(found: dict[str, Any]) -> Any:
    """Return metadata as confluent-kafka's `list_topics` does."""
    topics = {
        name: SimpleNamespace(
            topic=name,
            error=None,
            partitions={
                part.partition_index: SimpleNamespace(
                    id=part.partition_index, leader=part.leader_id, replicas=part.replica_nodes
                )
                for part in each.partitions
            },
        )
        for name, each in found.items()
    }
    return SimpleNamespace(topics=topics, brokers={1: SimpleNamespace(id=1)})


def raised(code: int, what: str, **flags: bool) -> KafkaException:
    return KafkaException(KafkaError(code, what, **flags))


class Client:
    """Represents one client: use `send_request` in a coroutine, `block` in a thread."""

    def __init__(self, process: Process, client_id: str) -> None:
        self.process = process
        self.connection = process.connect(f"{process.name} {client_id}")

    async def send_once(
        self,
        api_key: int,
        version: int,
        given: Any,
        *,
        may_be_late: bool = False,
        timeout_ms: float = 1_000,
    ) -> Any:
        """Send a request once and return the response.

        Raises Unanswered.
        """
        return await self.process.await_response(
            self.connection.send(
                api_key, version, given, may_be_late=may_be_late, timeout_ms=timeout_ms
            )
        )

    async def send_request(
        self,
        api_key: int,
        version: int,
        given: Any,
        code_of: Callable[[Any], int],
        *,
        retries: frozenset[Code] = RETRIABLE,
        retry_ms: float = RETRY_MS,
        may_be_late: bool = False,
    ) -> Any:
        """Send a request until it gets a response without an error, however long that takes.

        Raises Failed.
        """
        while True:
            try:
                answer = await self.send_once(api_key, version, given, may_be_late=may_be_late)
            except Unanswered:
                pass
            else:
                code = Code(code_of(answer))
                if code is Code.NONE:
                    return answer
                if code not in retries:
                    raise Failed(code)
            await self.process.sleep_ms(retry_ms)

    async def metadata(self, topics: list[str] | None = None) -> dict[str, Any]:
        """Return the existing topics of a Metadata response, by name."""
        wanted = None if topics is None else [{"topic_id": None, "name": t} for t in topics]
        given = {
            "topics": wanted,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": False,
        }
        answer = await self.send_request(METADATA, 12, given, lambda _: 0)
        return {str(t.name): t for t in answer.topics if t.error_code == 0}

    async def list_offset(self, asked: TopicPartition, timestamp: int, isolation: int) -> Any:
        """Return the response of ListOffsets for one partition."""
        partition = {"partition_index": asked.partition, "timestamp": timestamp}
        given = {
            "replica_id": -1,
            "isolation_level": isolation,
            "topics": [{"name": asked.topic, "partitions": [partition]}],
        }
        answer = await self.send_request(
            LIST_OFFSETS,
            7,
            given,
            lambda answer: answer.topics[0].partitions[0].error_code,
            retries=UNKNOWN,
        )
        return answer.topics[0].partitions[0]

    def list_topics(self, topic: str | None, timeout_s: float) -> Any:
        """Block until the metadata are here, as confluent-kafka's clients do."""
        self.process.yield_turn()
        work = self.metadata(None if topic is None else [topic])
        task = self.process.call(work, None if timeout_s < 0 else timeout_s)
        if task is None:
            raise raised(KafkaError._TIMED_OUT, "no answer", retriable=True)
        return as_metadata(task.result())
