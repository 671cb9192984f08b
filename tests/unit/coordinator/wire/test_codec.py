from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import Code
from coordinator.wire.codec import (
    MalformedRequest,
    build_entity,
    create_cached_frame_reader,
    encode_for_reuse,
    encode_response,
    load_schema,
    read_request,
    read_request_header,
    to_ms,
)

PRODUCE, FETCH, METADATA, HEARTBEAT, API_VERSIONS = 0, 1, 3, 12, 18


def response_type(api_key: int, version: int) -> type:
    schema = load_schema(api_key, version)
    assert schema is not None
    return schema.response_type


def test_fields_that_a_version_lacks_are_dropped() -> None:
    for version in range(14):
        built = build_entity(
            response_type(METADATA, version),
            {
                "brokers": [{"node_id": 1, "host": "h", "port": 9}],
                "cluster_id": "c",
                "controller_id": 1,
                "topics": (),
            },
        )
        assert hasattr(built, "cluster_id") == (version >= 2)
        assert built.brokers[0].port == 9


def test_a_field_without_a_default_that_is_not_given_is_named() -> None:
    with pytest.raises(TypeError, match="MetadataResponse needs 'topics'"):
        build_entity(response_type(METADATA, 12), {"brokers": ()})


def test_plain_values_become_what_kio_wants() -> None:
    built = build_entity(
        response_type(PRODUCE, 13),
        {
            "throttle_time": 1_500,
            "responses": [
                {
                    "topic_id": UUID(int=5),
                    "partition_responses": [
                        {
                            "index": 0,
                            "error_code": Code.NOT_ENOUGH_REPLICAS,
                            "base_offset": 7,
                            "log_append_time": 1_700_000_000_123,
                            "record_errors": (),
                        },
                        {"index": 1, "base_offset": 7, "log_append_time": -1, "record_errors": ()},
                    ],
                }
            ],
        },
    )
    assert built.throttle_time == timedelta(milliseconds=1_500)
    first, second = built.responses[0].partition_responses
    assert first.error_code == 19
    assert first.log_append_time.timestamp() == 1_700_000_000.123
    assert second.log_append_time is None
    encoded = encode_response(3, built)
    assert isinstance(encoded, bytes)
    assert int.from_bytes(encoded[:4], "big") == len(encoded) - 4
    assert int.from_bytes(encoded[4:8], "big") == 3


def test_durations_are_whole_milliseconds() -> None:
    assert to_ms(timedelta(milliseconds=-1)) == -1
    assert to_ms(timedelta(days=30)) == 30 * 86_400_000


@pytest.mark.parametrize(
    "frame",
    [b"", b"\0\0\0\x03", b"\0\x03\0\x0c\0\0\0\x01\0\x05ab"],
    ids=["nothing", "half a header", "a client id cut short"],
)
def test_a_header_that_is_none_is_malformed(frame: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read_request_header(frame)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        b"\x80",
        b"\x05\x80\x80\x80\x80\x80\x80",
        b"\0\xff\xff\xff\xff\x07",
        b"\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ],
)
def test_a_body_that_is_none_is_malformed(body: bytes) -> None:
    schema = load_schema(METADATA, 12)
    assert schema is not None
    frame = b"\0\x03\0\x0c\0\0\0\x01\xff\xff" + body
    with pytest.raises(MalformedRequest):
        read_request(schema, frame, read_request_header(frame).body_start)


@given(st.sampled_from([(0, 9), (1, 4), (1, 16), (2, 7), (3, 1), (11, 5), (18, 3)]), st.binary())
def test_any_bytes_are_a_request_or_malformed(api: tuple[int, int], body: bytes) -> None:
    schema = load_schema(*api)
    assert schema is not None
    head = api[0].to_bytes(2, "big") + api[1].to_bytes(2, "big")
    frame = head + b"\0\0\0\x01\xff\xff" + body
    try:
        read_request(schema, frame, read_request_header(frame).body_start)
    except MalformedRequest:
        return


def test_tagged_fields_in_the_header_are_passed_over() -> None:
    schema = load_schema(API_VERSIONS, 3)
    assert schema is not None
    frame = b"\0\x12\0\x03\0\0\0\x01\xff\xff" + b"\x01\x07\x02ab" + b"\x02c\x02v\0"
    request = read_request(schema, frame, read_request_header(frame).body_start)
    assert (request.client_software_name, request.client_software_version) == ("c", "v")


def heartbeat_reader() -> Callable[[bytes, str], tuple[Any, str, str]]:
    """Return a cached reader of Heartbeat v0 that returns request, client id and host."""
    schema = load_schema(HEARTBEAT, 0)
    assert schema is not None

    def read(frame: bytes, host: str) -> tuple[Any, str, str]:
        header = read_request_header(frame)
        assert (header.api_key, header.version) == (HEARTBEAT, 0)
        return read_request(schema, frame, header.body_start), header.client_id, host

    return create_cached_frame_reader(HEARTBEAT_START, read)


HEARTBEAT_START = b"\0\x0c\0\0"  # key, version
HEARTBEAT_BODY = b"\0\x01g\0\0\0\x01\0\x01m"


def heartbeat(
    correlation_id: int, client: bytes = b"\0\x01c", body: bytes = HEARTBEAT_BODY
) -> bytes:
    return HEARTBEAT_START + correlation_id.to_bytes(4, "big") + client + body


def test_what_a_client_says_again_and_again_is_read_once() -> None:
    read = heartbeat_reader()
    once = read(heartbeat(1), "here")
    request, client_id, host = once
    assert (request.group_id, request.generation_id, request.member_id) == ("g", 1, "m")
    assert (client_id, host) == ("c", "here")
    assert read(heartbeat(2**31 - 1), "here") is once


def test_only_frames_of_one_client_that_say_the_same_are_equal() -> None:
    read = heartbeat_reader()
    request = read(heartbeat(1), "here")[0]
    assert read(heartbeat(1), "there") == (request, "c", "there")
    assert read(heartbeat(1, b"\0\x01d"), "here") == (request, "d", "here")
    next_generation = HEARTBEAT_BODY.replace(b"\x01\0\x01m", b"\x02\0\x01m")
    assert read(heartbeat(1, body=next_generation), "here")[0].generation_id == 2


def test_what_is_long_is_read_each_time_and_what_is_malformed_is_so_each_time() -> None:
    read = heartbeat_reader()
    long = heartbeat(1, body=b"\x02\0" + b"g" * 512 + b"\0\0\0\x01\0\x01m")
    assert read(long, "here") == read(long, "here")
    assert read(long, "here") is not read(long, "here")
    for malformed in (heartbeat(1)[:-1], HEARTBEAT_START, HEARTBEAT_START + b"\0"):
        for _ in range(2):
            with pytest.raises(MalformedRequest):
                read(malformed, "here")


def test_a_version_that_kio_does_not_know_has_no_schema() -> None:
    assert load_schema(FETCH, 99) is None
    assert load_schema(999, 0) is None


@pytest.mark.parametrize(("api_key", "version"), [(HEARTBEAT, 3), (HEARTBEAT, 4), (METADATA, 1)])
def test_an_answer_that_is_written_once_is_the_same_each_time(api_key: int, version: int) -> None:
    given: dict[str, Any] = {"error_code": 27, "brokers": (), "topics": ()}
    response = build_entity(response_type(api_key, version), {"controller_id": 1, **given})
    written = encode_for_reuse(response)
    for correlation_id in (0, 7, 2**31 - 1):
        assert encode_response(correlation_id, written) == encode_response(correlation_id, response)
