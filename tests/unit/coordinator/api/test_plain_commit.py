"""Test that an OffsetCommit that is read without kio is what kio reads, and left to it if not."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_writer

from coordinator.api import offset_commit
from coordinator.api.plain_commit import VERSIONS, read_plain_commit
from coordinator.wire.codec import MalformedRequest, build_entity, load_schema, read_request

HEAD = b"\0\x08\0\x08"  # some bytes of a header, which end at 4
PARTITION_FIELDS = (
    "partition_index",
    "committed_offset",
    "committed_leader_epoch",
    "committed_metadata",
)
PLAIN: dict[str, Any] = {
    "group_id": "counts",
    "generation_id_or_member_epoch": 3,
    "member_id": "m",
    "group_instance_id": None,
}

texts = st.sampled_from(["", "a", "ö" * 63, "x" * 126, "x" * 127, "y" * 200])
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
versions = st.sampled_from(VERSIONS)
rows = st.lists(st.tuples(int32, int64, int32), min_size=1, max_size=3)


def encode(
    version: int, fields: dict[str, Any], topics: list[tuple[str, list[tuple[Any, ...]]]]
) -> bytes:
    """Encode a request behind HEAD and a header without tags."""
    listed = [
        {
            "name": name,
            "partitions": [dict(zip(PARTITION_FIELDS, row, strict=True)) for row in rows],
        }
        for name, rows in topics
    ]
    schema = load_schema(offset_commit.API_KEY, version)
    assert schema is not None
    out = BytesIO()
    request = build_entity(schema.request_type, {**PLAIN, **fields, "topics": listed})
    entity_writer(schema.request_type)(out, request)
    return HEAD + b"\0" + out.getvalue()


def read_with_kio(version: int, frame: bytes) -> Any:
    schema = load_schema(offset_commit.API_KEY, version)
    assert schema is not None
    return read_request(schema, frame, len(HEAD))


def list_fields(request: Any) -> tuple[Any, ...]:
    """List all fields of a request; no metadata is the same whether null or empty."""
    return (
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        [
            (
                topic.name,
                [
                    (
                        partition.partition_index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


@given(versions, texts, int32, texts, st.none() | texts, texts, rows, st.sampled_from(["", None]))
def test_a_plain_commit_is_what_kio_reads(
    version: int,
    group_id: str,
    generation: int,
    member_id: str,
    instance_id: str | None,
    topic: str,
    partitions: list[tuple[int, int, int]],
    metadata: str | None,
) -> None:
    fields = {
        "group_id": group_id,
        "generation_id_or_member_epoch": generation,
        "member_id": member_id,
        "group_instance_id": instance_id,
    }
    frame = encode(version, fields, [(topic, [(*row, metadata) for row in partitions])])
    found = read_plain_commit(frame, len(HEAD))
    names = group_id, member_id, instance_id or "", topic
    are_short = all(len(text.encode()) < 127 for text in names)
    assert (found is not None) is are_short
    if found is not None:
        assert list_fields(found) == list_fields(read_with_kio(version, frame))


@pytest.mark.parametrize("count", [1, 2, 126, 127, 300])
def test_as_many_partitions_are_read_as_one_byte_can_count(count: int) -> None:
    frame = encode(9, {}, [("words", [(each, 7, -1, "") for each in range(count)])])
    found = read_plain_commit(frame, len(HEAD))
    assert (found is not None) is (count <= 126)
    if found is not None:
        assert list_fields(found) == list_fields(read_with_kio(9, frame))


ROW = (0, 42, 3, "")


@pytest.mark.parametrize(
    "topics",
    [
        [],
        [("words", [])],
        [("words", [ROW]), ("lines", [ROW])],
        [("words", [(0, 42, 3, "m")])],
        [("words", [ROW, (1, 42, 3, "m")])],
        [("words", [ROW, (1, 42, 3, "m" * 18)])],
    ],
)
def test_any_other_commit_is_left_to_kio(topics: list[tuple[str, list[tuple[Any, ...]]]]) -> None:
    assert read_plain_commit(encode(9, {}, topics), len(HEAD)) is None


def list_changes(frame: bytes) -> Iterator[bytes]:
    """Yield the frame with each byte changed, removed or doubled, and cut anywhere."""
    for at in range(len(HEAD), len(frame)):
        for value in (0, 1, 2, 3, 0x13, 0x7F, 0x80, 0xFF):
            yield frame[:at] + bytes([value]) + frame[at + 1 :]
        yield frame[:at] + frame[at + 1 :]
        yield frame[: at + 1] + frame[at:]
        yield frame[:at]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", ["", "counts"])
@pytest.mark.parametrize("count", [1, 2])
def test_changed_bytes_are_read_as_kio_reads_them_or_left_to_it(
    version: int, text: str, count: int
) -> None:
    fields = {"group_id": text, "member_id": text, "group_instance_id": text}
    for changed in list_changes(encode(version, fields, [(text, [ROW] * count)])):
        found = read_plain_commit(changed, len(HEAD))
        if found is not None:
            assert list_fields(found) == list_fields(read_with_kio(version, changed))


def test_a_length_of_several_bytes_is_left_to_kio() -> None:
    frame = encode(9, {"group_id": "G"}, [("words", [ROW])])
    assert read_plain_commit(frame, len(HEAD)) is not None
    changed = frame.replace(b"\2G", b"\x90" + b"\1" * 0x8F)
    assert read_plain_commit(changed, len(HEAD)) is None


def test_a_malformed_commit_is_refused_as_kio_refuses_it() -> None:
    frame = encode(9, {}, [("words", [ROW])])
    any_request = read_plain_commit(frame, len(HEAD))
    assert any_request is not None
    read = offset_commit.create_request_reader(9, lambda frame, _: read_with_kio(9, frame))
    with pytest.raises(MalformedRequest):
        read(frame[:-3], len(HEAD))
    with pytest.raises(MalformedRequest):
        read(frame.replace(b"counts", b"count\xff"), len(HEAD))


@pytest.mark.parametrize("version", [7, 10])
def test_versions_of_another_form_are_left_to_kio(version: int) -> None:
    def read_any(frame: bytes, position: int) -> Any:
        raise AssertionError

    assert offset_commit.create_request_reader(version, read_any) is read_any
