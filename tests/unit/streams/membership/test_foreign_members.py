"""Test that a member whose group has members of others says who these are, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.connection import ConnectionLost
from tests.unit.streams.membership.fakes import (
    JOIN,
    NOTHING,
    SYNC,
    Worker,
    create_join_response,
    create_sync_response,
)

DESCRIBE = 15
STREAMS_DESCRIBE = 89
INCONSISTENT = ErrorCode.inconsistent_group_protocol


def describe(*members: str, code: ErrorCode = ErrorCode.none, protocol: str = "range") -> Any:
    """Return a DescribeGroups response with these members of a group of plain consumers."""
    entity: Mapping[str, Any] = vars(
        __import__("kio.schema.describe_groups.v6.response", fromlist=["_"])
    )
    described = tuple(
        entity["DescribedGroupMember"](
            member_id=each,
            group_instance_id=None,
            client_id="plain",
            client_host="/10.0.0.7",
            member_metadata=b"",
            member_assignment=b"",
        )
        for each in members
    )
    group = entity["DescribedGroup"](
        error_code=code,
        error_message=None,
        group_id="a",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data=protocol,
        members=described,
        authorized_operations=0,
    )
    return {"groups": (group,)}


def refusal(worker: Worker, api_key: int, answer: Any) -> str:
    """Return the error with which the member ends where the group has no protocol in common."""
    fields = create_join_response() if api_key == JOIN else create_sync_response(NOTHING)
    worker.coordinator.answer(api_key, {**fields, "error_code": INCONSISTENT})
    worker.coordinator.answer(DESCRIBE, answer)
    worker.coordinator.answer(STREAMS_DESCRIBE, ConnectionLost("gone"))
    with pytest.raises(StreamsError) as raised:
        worker.join()
    return str(raised.value)


@pytest.mark.parametrize("api_key", [JOIN, SYNC])
def test_the_members_of_others_are_named_with_what_they_speak(worker: Worker, api_key: int) -> None:
    assert refusal(worker, api_key, describe("plain-1", "plain-2")) == (
        "group 'a' has members that are not of this application (inconsistent_group_protocol: "
        "plain-1 at 10.0.0.7, plain-2 at 10.0.0.7, which speak 'consumer' with protocol 'range'; "
        "one that was killed is a member until its session time-out is over): stop them, or choose "
        "another application id"
    )


def test_of_many_members_the_first_are_named(worker: Worker) -> None:
    said = refusal(worker, JOIN, describe(*"12345", protocol=""))
    assert "3 at 10.0.0.7 and 2 more, which speak 'consumer'; one that was" in said


@pytest.mark.parametrize(
    "answer",
    [
        ConnectionLost("gone"),
        describe(code=ErrorCode.group_id_not_found),
        describe(code=ErrorCode.group_authorization_failed),
        describe(code=ErrorCode.coordinator_not_available),
        describe(code=ErrorCode.unknown_server_error),
        describe(),
    ],
)
def test_without_their_description_the_explanation_is_the_same(worker: Worker, answer: Any) -> None:
    assert refusal(worker, JOIN, answer) == (
        "group 'a' has members that are not of this application (inconsistent_group_protocol): "
        "stop them, or choose another application id"
    )
