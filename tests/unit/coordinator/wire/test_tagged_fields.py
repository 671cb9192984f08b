"""Test requests of newer clients, with tagged fields that the broker doesn't know."""

from __future__ import annotations

import pytest
from kio.index import load_request_schema

from coordinator.api.router import APIS
from coordinator.wire.array_limits import ELEMENTS_MAX, create_array_limit_walk
from coordinator.wire.codec import MalformedRequest, load_schema, read_request, read_request_header
from coordinator.wire.tagged_fields import ElementBudget, Walk, create_strict_tag_walk, skip_tags
from tests.unit.coordinator.api.client import example, request_bytes

FLEXIBLE = [
    (api.API_KEY, version)
    for api in APIS
    for version in api.VERSIONS
    if load_request_schema(api.API_KEY, version).__flexible__
]
METADATA, FETCH = 3, 1
UNKNOWN_FIELD = b"\x64\x05hello"  # tag 100, 5 bytes
ANOTHER_UNKNOWN_FIELD = b"\xe4\x01\x00"  # tag 228, none


def read(frame: bytes) -> object:
    header = read_request_header(frame)
    schema = load_schema(header.api_key, header.version)
    assert schema is not None
    return read_request(schema, frame, header.body_start)


def with_unknown_fields(frame: bytes, fields: tuple[bytes, ...]) -> bytes:
    """Return the request with these tagged fields in its header and each of its structs."""
    header = read_request_header(frame)
    sections = [(header.body_start, skip_tags(frame, header.body_start))]

    def noting(known: frozenset[int]) -> Walk:
        over = create_strict_tag_walk(known)

        def walk(frame: bytes, at: int, budget: ElementBudget) -> int:
            sections.append((at, over(frame, at, budget)))
            return sections[-1][1]

        return walk

    request_type = load_request_schema(header.api_key, header.version)
    create_array_limit_walk(request_type, noting)(frame, sections[0][1], [ELEMENTS_MAX])
    for start, end in sorted(sections, reverse=True):
        count = bytes([frame[start] + len(fields)])
        frame = frame[:start] + count + frame[start + 1 : end] + b"".join(fields) + frame[end:]
    return frame


@pytest.mark.parametrize(("api_key", "version"), FLEXIBLE)
def test_fields_that_are_not_known_are_skipped_in_every_struct(api_key: int, version: int) -> None:
    frame = request_bytes(example(load_request_schema(api_key, version)))
    newer = with_unknown_fields(frame, (UNKNOWN_FIELD, ANOTHER_UNKNOWN_FIELD))
    assert len(newer) > len(frame)
    assert read(newer) == read(frame)


def test_a_field_that_is_known_stays_beside_one_that_is_not() -> None:
    frame = request_bytes(example(load_request_schema(FETCH, 12)))
    assert "cluster_id='x'" in repr(read(frame))
    assert read(with_unknown_fields(frame, (UNKNOWN_FIELD,))) == read(frame)


@pytest.mark.parametrize(
    "tags",
    [
        b"\x01\x64\x06hello",
        b"\x02\x64\x05hello",
        b"\x02\x64\x00\x64\x00",
        b"\x02\x64\x00\x63\x00",
        b"\x01\x64\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x0f\x64\x00",
        b"\x01\xff\xff\xff\xff\xff\x00",
    ],
    ids=[
        "longer than the request",
        "one is missing",
        "twice",
        "out of order",
        "of 2^32-1 bytes",
        "2^32-1 of them",
        "a tag without end",
    ],
)
def test_tagged_fields_that_can_not_be_are_malformed(tags: bytes) -> None:
    head = b"\0\x03\0\x0c" + bytes(4) + b"\xff\xff" + b"\0"
    with pytest.raises(MalformedRequest):
        read(head + b"\x00\x01\x00" + tags)
