"""Send the most common requests of cases and return the part of the response they check.

Versions are librdkafka's unless a case names another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from coordinator.errors import Code
from tests.answers import codes
from tests.conformance.wire import Api, Client
from tests.processes import HANG_LIMIT_S

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
ENOUGH_BYTES = 1_000_000

T = TypeVar("T")


def settled(call: Callable[[], T], passing: Iterable[Code] = (Code.CONCURRENT_TRANSACTIONS,)) -> T:
    """Call until the response is none of the passing codes, which an ending transaction gives."""
    deadline = time.monotonic() + HANG_LIMIT_S
    unsettled = set(passing)
    while True:
        answer = call()
        found = {answer} if isinstance(answer, int) else set(codes(answer))
        if unsettled.isdisjoint(found) or time.monotonic() > deadline:
            return answer
        time.sleep(0.005)


def eventually(call: Callable[[], Any], expected: Any) -> Any:
    """Call until the response is the expected one: real Kafka's metadata comes a moment later."""
    deadline = time.monotonic() + HANG_LIMIT_S
    while True:
        answer = call()
        if answer == expected or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


# Topics


def create_topic(
    client: Client, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic and wait until each partition answers.

    Its records are kept whatever their timestamps say.
    """
    pairs = {"retention.ms": "-1", **(configs or {})}.items()
    response = client.send(
        Api.CREATE_TOPICS,
        4,
        topics=[
            {
                "name": name,
                "num_partitions": partitions,
                "replication_factor": 1,
                "configs": [{"name": key, "value": value} for key, value in pairs],
            }
        ],
        timeout=10_000,
    )
    assert set(codes(response)) == {Code.NONE}, response
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "timestamp": LATEST} for index in range(partitions)
            ],
        }
    ]
    ready = settled(
        lambda: client.send(Api.LIST_OFFSETS, 7, replica_id=-1, topics=topics),
        (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.NOT_LEADER_OR_FOLLOWER, Code.LEADER_NOT_AVAILABLE),
    )
    assert set(codes(ready)) == {Code.NONE}, ready


def delete_topic(client: Client, name: str) -> None:
    """Delete a topic and wait until it can't be found any more."""
    response = client.send(Api.DELETE_TOPICS, 4, topic_names=[name], timeout=10_000)
    assert set(codes(response)) == {Code.NONE}, response
    gone = eventually(
        lambda: metadata(client, name).topics[0].error_code, Code.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert gone == Code.UNKNOWN_TOPIC_OR_PARTITION


def metadata(client: Client, *names: str, version: int = 12, create: bool = False) -> Any:
    return client.send(
        Api.METADATA,
        version,
        topics=[{"name": name} for name in names],
        allow_auto_topic_creation=create,
    )


def topic_id(client: Client, name: str) -> UUID:
    (topic,) = metadata(client, name).topics
    assert topic.topic_id is not None
    found: UUID = topic.topic_id
    return found


# The log


def post_produce(
    client: Client,
    topic: str,
    data: bytes | None,
    *,
    partition: int = 0,
    transactional_id: str | None = None,
    acks: int = -1,
    version: int = 10,
) -> int:
    partitions = [{"index": partition, "records": data}]
    return client.post(
        Api.PRODUCE,
        version,
        transactional_id=transactional_id,
        acks=acks,
        timeout=10_000,
        topic_data=[{"name": topic, "partition_data": partitions}],
    )


def produce(client: Client, topic: str, data: bytes | None, **options: Any) -> Any:
    """Write bytes as they are to one partition; return that partition's part of the response."""
    response = client.receive(post_produce(client, topic, data, **options))
    return response.responses[0].partition_responses[0]


def post_fetch(
    client: Client,
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    isolation: int = READ_UNCOMMITTED,
    max_bytes: int = ENOUGH_BYTES,
    partition_max_bytes: int = ENOUGH_BYTES,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
) -> int:
    return client.post(
        Api.FETCH,
        12,
        replica_id=-1,
        max_wait=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=[
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": partition,
                        "fetch_offset": offset,
                        "partition_max_bytes": partition_max_bytes,
                    }
                ],
            }
        ],
    )


def fetch(client: Client, topic: str, offset: int, **options: Any) -> Any:
    """Read one partition outside any session; return that partition's part of the response."""
    response = client.receive(post_fetch(client, topic, offset, **options))
    assert response.error_code == Code.NONE
    return response.responses[0].partitions[0]


def list_offset(
    client: Client,
    topic: str,
    timestamp: int,
    *,
    partition: int = 0,
    isolation: int = READ_UNCOMMITTED,
    version: int = 7,
) -> Any:
    partitions = [{"partition_index": partition, "timestamp": timestamp}]
    response = client.send(
        Api.LIST_OFFSETS,
        version,
        replica_id=-1,
        isolation_level=isolation,
        topics=[{"name": topic, "partitions": partitions}],
    )
    return response.topics[0].partitions[0]


def end_offset(client: Client, topic: str, *, isolation: int = READ_UNCOMMITTED) -> int:
    found: int = list_offset(client, topic, LATEST, isolation=isolation).offset
    return found


# Offsets


def commit_offset(
    client: Client,
    group: str,
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    metadata: str | None = "",
) -> Code:
    part = {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "committed_metadata": metadata,
    }
    response = client.send(
        Api.OFFSET_COMMIT,
        8,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[{"name": topic, "partitions": [part]}],
    )
    return Code(response.topics[0].partitions[0].error_code)


def fetch_offsets(
    client: Client, group: str, topics: Mapping[str, Iterable[int]] | None, stable: bool = False
) -> Any:
    """Return the group's part of OffsetFetch; `None` requests all topics."""
    named = topics and [
        {"name": name, "partition_indexes": indexes} for name, indexes in topics.items()
    ]
    response = client.send(
        Api.OFFSET_FETCH,
        9,
        groups=[{"group_id": group, "member_id": None, "member_epoch": -1, "topics": named}],
        require_stable=stable,
    )
    return response.groups[0]


def fetch_offset(
    client: Client, group: str, topic: str, *, partition: int = 0, stable: bool = False
) -> Any:
    """Return one partition's part of OffsetFetch."""
    return fetch_offsets(client, group, {topic: [partition]}, stable).topics[0].partitions[0]


def committed(client: Client, group: str, topic: str) -> int:
    """Return the committed offset of partition 0, -1 if there is none."""
    found: int = fetch_offset(client, group, topic).committed_offset
    return found


def settled_offset(client: Client, group: str, topic: str) -> int:
    """Return the committed offset of partition 0 once no transaction has it pending.

    Real Kafka answers EndTxn when the outcome is decided: its offsets come a moment later.
    """
    found = settled(
        lambda: fetch_offset(client, group, topic, stable=True), (Code.UNSTABLE_OFFSET_COMMIT,)
    )
    offset: int = found.committed_offset
    return offset


def delete_offsets(client: Client, group: str, topics: Mapping[str, Iterable[int]]) -> Any:
    """Send OffsetDelete and return the whole response."""
    return client.send(
        Api.OFFSET_DELETE,
        0,
        group_id=group,
        topics=[
            {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
            for name, indexes in topics.items()
        ],
    )


# Groups


def delete_groups(client: Client, *groups: str, version: int = 2) -> dict[str, Code]:
    """Delete groups and return the code of each."""
    response = client.send(Api.DELETE_GROUPS, version, groups_names=groups)
    return {each.group_id: Code(each.error_code) for each in response.results}


def listed_groups(client: Client) -> dict[str, tuple[str, str]]:
    """Return protocol type and state of each group in ListGroups."""
    response = client.send(Api.LIST_GROUPS, 4)
    assert response.error_code == Code.NONE
    return {each.group_id: (each.protocol_type, each.group_state) for each in response.groups}
