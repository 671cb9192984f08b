from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.serial import entity_reader

from coordinator.api.router import APIS
from coordinator.wire.array_limits import ELEMENTS_MAX, create_array_limit_walk
from coordinator.wire.codec import (
    MalformedRequest,
    build_entity,
    load_schema,
    read_request,
    read_request_header,
)
from coordinator.wire.tagged_fields import skip_tags
from tests.unit.coordinator.api.client import example, request_bytes

SERVED = [(api.API_KEY, version) for api in APIS for version in api.VERSIONS]
LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH = 2, 3, 8, 9
INT32_MAX = b"\x7f\xff\xff\xff"
UVARINT_MAX = b"\xff\xff\xff\xff\x0f"


@pytest.mark.parametrize(("api_key", "version"), SERVED)
def test_the_walk_over_a_request_ends_where_the_request_does(api_key: int, version: int) -> None:
    entity_type = load_request_schema(api_key, version)
    frame = request_bytes(example(entity_type))
    at = read_request_header(frame).body_start
    if entity_type.__flexible__:
        at = skip_tags(frame, at)
    assert create_array_limit_walk(entity_type)(frame, at, [ELEMENTS_MAX]) == len(frame)


def read(api_key: int, version: int, body: bytes) -> object:
    schema = load_schema(api_key, version)
    assert schema is not None
    head = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    frame = head + (b"\0" if schema.is_flexible else b"") + body
    return read_request(schema, frame, read_request_header(frame).body_start)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (1, INT32_MAX),
        (1, INT32_MAX + bytes(1_000)),
        (4, b"\0\0\0\x02\0\x01t\0"),
        (12, UVARINT_MAX),
        (12, UVARINT_MAX + bytes(1_000)),
        (12, b"\xff" * 1_000),
        (12, b"\x01\0\0" + UVARINT_MAX),
    ],
)
def test_an_array_or_a_varint_that_can_not_be_is_malformed(version: int, body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read(METADATA, version, body)


@given(
    st.lists(st.sampled_from(["", "", "", None, "\0", "m" * 200]), max_size=12),
    st.sampled_from([8, 9, 10]),
    st.none() | st.tuples(st.integers(0, 400), st.integers(0, 255)),
)
def test_elements_of_one_size_are_skipped_as_others_are(
    texts: list[str | None], version: int, change: tuple[int, int] | None
) -> None:
    """Check commits with and without metadata, and with a byte changed, against kio's reader."""
    entity_type = load_request_schema(OFFSET_COMMIT, version)
    partitions = [
        {
            "partition_index": number,
            "committed_offset": number << 40,
            "committed_leader_epoch": -1,
            "committed_metadata": text,
        }
        for number, text in enumerate(texts)
    ]
    topics = [{"name": "words", "topic_id": UUID(int=1), "partitions": partitions}]
    given_fields = {"group_id": "g", "member_id": "m", "generation_id_or_member_epoch": 1}
    request = build_entity(
        entity_type, {**given_fields, "group_instance_id": None, "topics": topics}
    )
    frame = bytearray(request_bytes(request))
    at = skip_tags(bytes(frame), read_request_header(bytes(frame)).body_start)
    if change is not None:
        frame[at + change[0] % (len(frame) - at)] = change[1]
    try:
        end = entity_reader(entity_type)(bytes(frame), at)[1]
    except Exception:
        return
    try:
        assert create_array_limit_walk(entity_type)(bytes(frame), at, [ELEMENTS_MAX]) == at + end
    except ValueError:
        assert change is not None  # the walk refuses some null arrays that kio takes


def test_an_array_inside_an_array_is_looked_at_too() -> None:
    body = b"\0\x01a" + bytes(10) + b"\0\0\0\x01" + b"\0\x01t" + INT32_MAX
    with pytest.raises(MalformedRequest, match="2147483647 elements in 0 bytes"):
        read(24, 0, body)


def test_a_request_has_a_bounded_number_of_elements_in_all_its_arrays() -> None:
    def partitions(count: int) -> bytes:
        return b"\0\x01t" + count.to_bytes(4, "big") + bytes(4 * count)

    def body(topics: int, partitions_each: int) -> bytes:
        return b"\0\x01g" + topics.to_bytes(4, "big") + partitions(partitions_each) * topics

    each = 999
    most = ELEMENTS_MAX // (1 + each)
    assert read(OFFSET_FETCH, 1, body(most, each))
    for topics, partitions_each in ((most + 1, each), (most, each + 1), (1, ELEMENTS_MAX)):
        with pytest.raises(MalformedRequest, match=f"above the {ELEMENTS_MAX} of a request"):
            read(OFFSET_FETCH, 1, body(topics, partitions_each))


def test_a_null_array_is_none() -> None:
    assert "topics=None" in repr(read(METADATA, 1, b"\xff\xff\xff\xff"))
    assert "topics=None" in repr(read(METADATA, 12, b"\0\0\0\0"))


def test_a_header_of_endless_bits_is_malformed_at_once() -> None:
    frame = b"\0\x03\0\x0c" + bytes(4) + b"\xff\xff" + b"\xff" * 1_000_000
    schema = load_schema(METADATA, 12)
    assert schema is not None
    with pytest.raises(MalformedRequest, match="more than 5 bytes"):
        read_request(schema, frame, read_request_header(frame).body_start)


@pytest.mark.parametrize("version", [1, 6])
def test_a_null_array_where_there_must_be_one_is_malformed(version: int) -> None:
    null = b"\xff\xff\xff\xff" if version == 1 else b"\0\0"
    with pytest.raises(MalformedRequest, match="topics is null"):
        read(LIST_OFFSETS, version, bytes(4) + b"\0" * (version > 1) + null)
