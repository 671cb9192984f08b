"""Test that answers that list endpoints are encoded as kio encodes them, each endpoint once."""

from __future__ import annotations

from typing import Any

import pytest
from kio.serial import entity_reader

from coordinator.api import streams_heartbeat_answer
from coordinator.api.streams_heartbeat_answer import encode_streams_answer
from coordinator.groups.streams.command import StreamsHeartbeatAnswer
from coordinator.groups.streams.configure import StreamsStatus, StreamsStatusCode
from coordinator.groups.streams.endpoints import EndpointPartitions
from coordinator.groups.streams.tasks import AssignedTasks
from coordinator.wire import codec
from coordinator.wire.codec import encode_response, load_schema

SCHEMA = load_schema(88, 0)
assert SCHEMA is not None
RESPONSE = SCHEMA.response_type
HEADER_BYTES = 4 + 4 + 1  # length, correlation id, no tagged fields
ENDPOINTS = tuple(
    EndpointPartitions(("host", 7_000 + each), [("lines", [each, 200])], [("orders", [1])])
    for each in range(200)
)
STATUS = StreamsStatus(StreamsStatusCode.STALE_TOPOLOGY, "it is behind")
TASKS = AssignedTasks({("0", 1): 3, ("1", 2): 3}, frozenset({("0", 2)}))


def decode(answer: StreamsHeartbeatAnswer) -> Any:
    frame = encode_response(7, encode_streams_answer(RESPONSE, answer))
    assert isinstance(frame, bytes)
    found: Any
    found, size = entity_reader(RESPONSE)(frame, HEADER_BYTES)
    assert HEADER_BYTES + size == len(frame), "nothing is left over"
    return found


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 200])
def test_an_answer_lists_all_endpoints(count: int) -> None:
    answer = StreamsHeartbeatAnswer("m", 5, endpoint_epoch=9, endpoints=ENDPOINTS[:count])
    listed = decode(answer).partitions_by_user_endpoint
    assert [each.user_endpoint.port for each in listed] == [7_000 + each for each in range(count)]
    for each in listed:
        [active], [standby] = each.active_partitions, each.standby_partitions
        assert (active.topic, active.partitions) == (
            "lines",
            (each.user_endpoint.port - 7_000, 200),
        )
        assert (standby.topic, standby.partitions) == ("orders", (1,))


@pytest.mark.parametrize("endpoints", [None, (), ENDPOINTS[:3]])
@pytest.mark.parametrize("assigned", [None, TASKS])
@pytest.mark.parametrize("statuses", [(), (STATUS,)])
def test_an_answer_has_its_fields_whatever_it_lists(
    endpoints: Any, assigned: Any, statuses: Any
) -> None:
    answer = StreamsHeartbeatAnswer("m", 5, 500, 60_000, statuses, assigned, 9, endpoints)
    found = decode(answer)
    assert (found.member_id, found.member_epoch, found.endpoint_information_epoch) == ("m", 5, 9)
    assert [each.status_detail for each in found.status] == [each.detail for each in statuses]
    listed = found.partitions_by_user_endpoint
    assert (listed is None) == (endpoints is None)
    assert len(listed or ()) == len(endpoints or ())
    assert (found.active_tasks is None) == (assigned is None)
    if assigned is not None:
        told = [(each.subtopology_id, each.partitions) for each in found.active_tasks]
        assert told == [("0", (1,)), ("1", (2,))]


def test_an_endpoint_is_encoded_once_for_all_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[object] = []
    right = codec.encode_entity

    def encode_entity(entity: Any) -> bytes:
        encoded.append(entity.user_endpoint.port)
        return right(entity)

    monkeypatch.setattr(streams_heartbeat_answer, "encode_entity", encode_entity)
    first, second = (EndpointPartitions(("host", port), [], []) for port in (1, 2))
    for listed in ((first,), (first, second), (second, first)):
        decode(StreamsHeartbeatAnswer("m", 5, endpoints=listed))
    assert encoded == [1, 2]
