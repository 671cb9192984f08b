"""Encode answers to StreamsGroupHeartbeat: tasks, statuses, and what the members' endpoints serve.

Most answers say nothing new, and are encoded once. A long answer lists the endpoints of all
members, each of which is encoded once for all answers, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from coordinator.errors import Code
from coordinator.groups.streams.command import StreamsHeartbeatAnswer
from coordinator.groups.streams.endpoints import EndpointPartitions, TopicIndexes
from coordinator.groups.streams.tasks import TaskId, group_by_subtopology
from coordinator.shard.record_fields import FieldWriter
from coordinator.wire.codec import (
    EncodedResponse,
    build_entity,
    encode_entity,
    encode_for_reuse,
)

_NO_ENDPOINTS = b"\1\0"  # how an encoded answer ends: an empty array, and no tagged fields


def encode_streams_answer(response_type: type, answer: StreamsHeartbeatAnswer) -> EncodedResponse:
    """Encode the answer to a heartbeat that was not refused."""
    if answer.endpoints is None:
        if answer.assigned is None and not answer.statuses:
            return _encode_unchanged_answer(
                response_type,
                answer.member_id,
                answer.epoch,
                answer.heartbeat_interval_ms,
                answer.task_offset_interval_ms,
                answer.endpoint_epoch,
            )
        return _encode_without_endpoints(response_type, answer, None)
    encoded = _encode_without_endpoints(response_type, answer, [])
    return _append_endpoints(response_type, encoded, answer.endpoints)


@lru_cache(16_384)  # most answers to a member equal the one before
def _encode_unchanged_answer(
    response_type: type,
    member_id: str,
    epoch: int,
    interval_ms: int,
    task_offset_interval_ms: int,
    endpoint_epoch: int,
) -> EncodedResponse:
    answer = StreamsHeartbeatAnswer(
        member_id, epoch, interval_ms, task_offset_interval_ms, endpoint_epoch=endpoint_epoch
    )
    return _encode_without_endpoints(response_type, answer, None)


def _encode_without_endpoints(
    response_type: type, answer: StreamsHeartbeatAnswer, endpoints: list[Any] | None
) -> EncodedResponse:
    """Encode an answer whose list of endpoints is empty, or null."""
    assigned = answer.assigned
    response = build_streams_response(
        response_type,
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval=answer.heartbeat_interval_ms,
        task_offset_interval=answer.task_offset_interval_ms,
        status=[
            {"status_code": int(status.code), "status_detail": status.detail}
            for status in answer.statuses
        ],
        active_tasks=None if assigned is None else describe_tasks(assigned.active),
        standby_tasks=None if assigned is None else describe_tasks(assigned.standby),
        warmup_tasks=None if assigned is None else describe_tasks(assigned.warmup),
        endpoint_information_epoch=answer.endpoint_epoch,
        partitions_by_user_endpoint=endpoints,
    )
    return encode_for_reuse(response)


def describe_tasks(tasks: Iterable[TaskId]) -> list[dict[str, Any]]:
    """Return tasks as the fields of `TaskIds`, in order."""
    return [
        {"subtopology_id": subtopology_id, "partitions": indexes}
        for subtopology_id, indexes in group_by_subtopology(tasks).items()
    ]


def build_streams_response(response_type: type, **fields: Any) -> Any:
    """Build a response; fields that aren't given have the values of a refusal."""
    refusal = {
        "error_code": Code.NONE,
        "error_message": None,
        "member_id": "",
        "member_epoch": 0,
        "heartbeat_interval": 0,
        "acceptable_recovery_lag": 0,
        "task_offset_interval": 0,
        "status": None,
        "active_tasks": None,
        "standby_tasks": None,
        "warmup_tasks": None,
        "endpoint_information_epoch": 0,
        "partitions_by_user_endpoint": None,
    }
    return build_entity(response_type, {**refusal, **fields})


# Endpoints


def _append_endpoints(
    response_type: type, encoded: EncodedResponse, endpoints: tuple[EndpointPartitions, ...]
) -> EncodedResponse:
    """Put endpoints in the place of the empty list at the end of an encoded answer."""
    if not encoded.body.endswith(_NO_ENDPOINTS):
        raise AssertionError("an answer ends with its list of endpoints")
    count = FieldWriter.for_tagged_field()
    count.write_array_length(len(endpoints))
    pieces = [_encode_endpoint(response_type, each) for each in endpoints]
    head = encoded.body[: -len(_NO_ENDPOINTS)]
    return encoded._replace(body=b"".join((head, count.to_bytes(), *pieces, b"\0")))


@lru_cache(16_384)  # each is listed in answers to all members
def _encode_endpoint(response_type: type, found: EndpointPartitions) -> bytes:
    host, port = found.endpoint
    fields = {
        "user_endpoint": {"host": host, "port": port},
        "active_partitions": _describe_partitions(found.active),
        "standby_partitions": _describe_partitions(found.standby),
    }
    response = build_streams_response(response_type, partitions_by_user_endpoint=[fields])
    [endpoint] = response.partitions_by_user_endpoint
    return encode_entity(endpoint)


def _describe_partitions(partitions: TopicIndexes) -> list[dict[str, Any]]:
    return [{"topic": topic, "partitions": indexes} for topic, indexes in partitions]
