"""Test how the error codes of responses are found, for the figures."""

from __future__ import annotations

from kio.schema.fetch.v16.response import FetchResponse
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.produce.v9.response import ProduceResponse

from coordinator.errors import Code
from coordinator.wire.codec import build_entity, encode_for_reuse
from coordinator.wire.error_codes import create_error_collector, find_error_codes


def test_codes_are_found_at_the_top_and_in_structs_within() -> None:
    partitions = [
        {"partition_index": 0, "high_watermark": 0, "records": b"", "aborted_transactions": ()},
        {
            "partition_index": 1,
            "error_code": Code.OFFSET_OUT_OF_RANGE,
            "high_watermark": 0,
            "records": None,
            "aborted_transactions": None,
        },
    ]
    response = build_entity(
        FetchResponse,
        {
            "error_code": Code.FETCH_SESSION_ID_NOT_FOUND,
            "session_id": 0,
            "responses": [{"topic_id": None, "partitions": partitions}],
        },
    )
    assert find_error_codes(response) == (
        Code.FETCH_SESSION_ID_NOT_FOUND,
        Code.OFFSET_OUT_OF_RANGE,
    )


def test_a_response_without_errors_has_no_codes() -> None:
    topic = {
        "name": "words",
        "partition_responses": [{"index": 0, "base_offset": 0, "record_errors": ()}],
    }
    assert find_error_codes(build_entity(ProduceResponse, {"responses": [topic]})) == ()


def test_a_response_that_is_encoded_once_keeps_its_codes() -> None:
    refused = build_entity(HeartbeatResponse, {"error_code": Code.REBALANCE_IN_PROGRESS})
    assert encode_for_reuse(refused).error_codes == (Code.REBALANCE_IN_PROGRESS,)
    answered = build_entity(HeartbeatResponse, {"error_code": Code.NONE})
    assert encode_for_reuse(answered).error_codes == ()


def test_a_type_is_looked_at_once() -> None:
    assert create_error_collector(FetchResponse) is create_error_collector(FetchResponse)
