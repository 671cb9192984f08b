"""Test that the streams members of the benchmark say on the wire what Kafka's schemas say."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.streams_members import StreamsAnswer, decode_answer, encode_heartbeat
from coordinator.wire.codec import (
    build_entity,
    encode_response,
    load_schema,
    read_request,
    read_request_header,
)

LENGTH_BYTES = 4  # of a frame, before its header
SCHEMA = load_schema(88, 0)
TASKS = [{"subtopology_id": "0", "partitions": [1, 4]}]
ANSWER = {
    "error_code": 0,
    "error_message": None,
    "member_id": "m",
    "member_epoch": 5,
    "heartbeat_interval": 500,
    "acceptable_recovery_lag": 0,
    "task_offset_interval": 60_000,
    "status": [{"status_code": 3, "status_detail": "missing"}],
    "active_tasks": TASKS,
    "standby_tasks": [],
    "warmup_tasks": [],
    "endpoint_information_epoch": 9,
    "partitions_by_user_endpoint": [],
}


def decode(frame: bytes) -> Any:
    assert SCHEMA is not None
    header = read_request_header(frame[LENGTH_BYTES:])
    assert (header.api_key, header.version) == (88, 0)
    return read_request(SCHEMA, frame[LENGTH_BYTES:], header.body_start)


def encode(**fields: Any) -> bytes:
    assert SCHEMA is not None
    encoded = encode_response(7, build_entity(SCHEMA.response_type, {**ANSWER, **fields}))
    assert isinstance(encoded, bytes)
    return encoded[LENGTH_BYTES:]


def test_a_member_that_joins_sends_its_topology_and_no_tasks() -> None:
    request = decode(encode_heartbeat("g", "m", 0, -1, topic="t", owned=(), port=7_000))
    [subtopology] = request.topology.subtopologies
    assert (request.group_id, request.member_id, request.process_id) == ("g", "m", "m")
    assert (subtopology.subtopology_id, subtopology.source_topics) == ("0", ("t",))
    assert request.active_tasks == request.standby_tasks == request.warmup_tasks == ()
    assert (request.user_endpoint.host, request.user_endpoint.port) == ("localhost", 7_000)
    assert request.client_tags == ()


def test_a_heartbeat_says_nothing_but_the_epochs() -> None:
    request = decode(encode_heartbeat("g", "m", 5, 9))
    assert (request.member_epoch, request.endpoint_information_epoch) == (5, 9)
    given = request.topology, request.active_tasks, request.process_id, request.user_endpoint
    assert given == (None, None, None, None)
    assert not request.shutdown_application


def test_owned_tasks_are_reported_by_their_partitions() -> None:
    request = decode(encode_heartbeat("g", "m", 5, 9, owned=(1, 4)))
    [tasks] = request.active_tasks
    assert (tasks.subtopology_id, tasks.partitions) == ("0", (1, 4))
    assert request.standby_tasks == ()


@pytest.mark.parametrize(
    ("tasks", "assigned"), [(TASKS, frozenset({1, 4})), ([], frozenset()), (None, None)]
)
def test_an_answer_tells_the_tasks_if_they_have_changed(tasks: Any, assigned: Any) -> None:
    told = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), tasks)
    told["standby_tasks"] = told["warmup_tasks"] = None if tasks is None else []
    assert decode_answer(encode(**told)) == StreamsAnswer(5, 500, assigned, 9)


def test_a_refused_heartbeat_spoils_the_measurement() -> None:
    with pytest.raises(RuntimeError, match="error 25, unknown"):
        decode_answer(encode(error_code=25, error_message="unknown", status=None))
