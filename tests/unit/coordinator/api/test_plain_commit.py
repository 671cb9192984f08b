"""Test that an OffsetCommit that is read without kio is what kio reads, and left to it if not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_writer

from coordinator.api import offset_commit
from coordinator.api.context import RequestContext
from coordinator.api.plain_commit import VERSIONS, PlainCommit
from coordinator.errors import Code
from coordinator.offsets.commit import CommittingMember
from coordinator.wire.codec import (
    MalformedRequest,
    build_entity,
    load_schema,
    read_request,
    read_request_header,
)
from tests.unit.coordinator.api.client import Client
from tests.unit.coordinator.fakes import FakeTopicList

HEAD = b"\0\x08\0\x08\0\0\0\7\0\3web"  # a header but for its tagged fields
HEAD_FIXED_BYTES = 8  # API, version and correlation id
HOST = "10.0.0.7"
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

TEXTS = ["", "a", "ö" * 63, "x" * 126, "x" * 127, "y" * 200]
PARTITIONS = 300
TOPICS = FakeTopicList(dict.fromkeys([*TEXTS, "words", "lines", "counts"], PARTITIONS))
SERVICES: Any = SimpleNamespace(topics=TOPICS)

ROW = (0, 42, 3, "")

texts = st.sampled_from(TEXTS)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
versions = st.sampled_from(VERSIONS)
partition_indexes = st.sampled_from([0, 1, PARTITIONS - 1, PARTITIONS, -1])
rows = st.lists(st.tuples(partition_indexes, int64, int32), min_size=1, max_size=3)


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


def read_with_kio(frame: bytes, client_host: str, version: int = 9) -> tuple[Any, RequestContext]:
    """Read any frame."""
    schema = load_schema(offset_commit.API_KEY, version)
    assert schema is not None
    header = read_request_header(frame)
    request = read_request(schema, frame, header.body_start)
    return request, create_context(version, header.client_id, client_host)


def create_context(version: int, client_id: str, client_host: str) -> RequestContext:
    return RequestContext(SERVICES, version, client_id, client_host, object)


LEFT: tuple[Any, RequestContext] = object(), cast(RequestContext, None)
# One for all tests, so that what it keeps of their frames is tested, too.
READERS = {
    version: offset_commit.create_frame_reader(
        version, lambda frame, host: LEFT, partial(create_context, version)
    )
    for version in VERSIONS
}


def read_plain_commit(
    version: int, frame: bytes, client_host: str = HOST
) -> tuple[PlainCommit, RequestContext] | None:
    """Read a frame as the broker does; None if that leaves it to kio."""
    found = READERS[version](frame, client_host)
    return None if found is LEFT else found


def check_read_alike(version: int, frame: bytes, found: tuple[PlainCommit, RequestContext]) -> None:
    """Check that what was read has the fields that kio reads, and its context."""
    (command, committer, offsets), context = found
    request, expected_context = read_with_kio(frame, HOST, version)
    assert context == expected_context
    assert command.offsets is offsets
    assert (command.producer, command.retention_ms) == (None, None)
    assert command.group_id == request.group_id
    assert committer == CommittingMember(
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        knows_epochs=version == 9,
    )
    [topic] = request.topics
    known = TOPICS.get(topic.name)
    assert known is not None
    assert (offsets.topic, offsets.topic_id) == (topic.name, known.id)
    assert [*zip(offsets.partitions, offsets.offsets, offsets.leader_epochs, strict=True)] == [
        (each.partition_index, each.committed_offset, each.committed_leader_epoch)
        for each in topic.partitions
    ]
    assert not any(each.committed_metadata for each in topic.partitions)


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
    found = read_plain_commit(version, frame)
    names = group_id, member_id, instance_id or "", topic
    are_short = all(len(text.encode()) < 127 for text in names)
    exist = all(0 <= index < PARTITIONS for index, _, _ in partitions)
    assert (found is not None) is (are_short and exist)
    if found is not None:
        check_read_alike(version, frame, found)


@pytest.mark.parametrize("count", [1, 2, 126, 127, 300])
def test_as_many_partitions_are_read_as_one_byte_can_count(count: int) -> None:
    frame = encode(9, {}, [("words", [(each, 7, -1, "") for each in range(count)])])
    found = read_plain_commit(9, frame)
    assert (found is not None) is (count <= 126)
    if found is not None:
        check_read_alike(9, frame, found)


@pytest.mark.parametrize("version", VERSIONS)
def test_frames_that_begin_differently_are_told_apart(version: int) -> None:
    plain = encode(version, {}, [("words", [ROW])])
    changes: list[dict[str, Any]] = [
        {"group_id": "sums"},
        {"generation_id_or_member_epoch": 4},
        {"member_id": "n"},
        {"group_instance_id": "i"},
    ]
    frames = [
        plain,
        *[encode(version, change, [("words", [ROW])]) for change in changes],
        encode(version, {}, [("lines", [ROW])]),
        encode(version, {}, [("words", [(1, 43, 4, "")])]),
        plain.replace(b"\3web", b"\3app"),
    ]
    for frame in (*frames, *frames):
        found = read_plain_commit(version, frame)
        assert found is not None
        check_read_alike(version, frame, found)
    other_host = read_plain_commit(version, plain, "10.0.0.8")
    assert other_host is not None
    assert other_host[1].client_host == "10.0.0.8"


def test_a_topic_that_is_made_again_has_its_new_id() -> None:
    TOPICS.create("again", 2)
    frame = encode(9, {}, [("again", [(1, 7, -1, "")])])
    assert read_plain_commit(9, frame) is not None
    TOPICS.delete("again")
    assert read_plain_commit(9, frame) is None
    TOPICS.create("again", 1)
    assert read_plain_commit(9, frame) is None
    TOPICS.grow("again", 2)
    found = read_plain_commit(9, frame)
    assert found is not None
    check_read_alike(9, frame, found)


@pytest.mark.parametrize("head", [b"\xff\xff", b"\1\0" + b"x" * 256])
def test_no_client_id_and_a_long_one_are_left_to_kio(head: bytes) -> None:
    frame = encode(9, {}, [("words", [ROW])])
    assert read_plain_commit(9, frame.replace(b"\0\3web", head)) is None
    assert read_plain_commit(9, frame.replace(b"\0\3web", b"\0\xff" + b"x" * 255)) is not None
    assert read_plain_commit(9, frame.replace(b"\0\3web", b"\0\0")) is not None


@pytest.mark.parametrize(
    "topics",
    [
        [],
        [("words", [])],
        [("words", [ROW]), ("lines", [ROW])],
        [("words", [(0, 42, 3, "m")])],
        [("words", [ROW, (1, 42, 3, "m")])],
        [("words", [ROW, (1, 42, 3, "m" * 18)])],
        [("unknown", [ROW])],
        [("words", [ROW, (PARTITIONS, 42, 3, "")])],
    ],
)
def test_any_other_commit_is_left_to_kio(topics: list[tuple[str, list[tuple[Any, ...]]]]) -> None:
    assert read_plain_commit(9, encode(9, {}, topics)) is None


def list_changes(frame: bytes) -> Iterator[bytes]:
    """Yield the frame with each byte changed, removed or doubled, and cut anywhere."""
    for at in range(HEAD_FIXED_BYTES, len(frame)):
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
        found = read_plain_commit(version, changed)
        if found is not None:
            check_read_alike(version, changed, found)


def test_a_length_of_several_bytes_is_left_to_kio() -> None:
    frame = encode(9, {"group_id": "G"}, [("words", [ROW])])
    assert read_plain_commit(9, frame) is not None
    changed = frame.replace(b"\2G", b"\x90" + b"\1" * 0x8F)
    assert read_plain_commit(9, changed) is None


def test_a_malformed_commit_is_refused_as_kio_refuses_it() -> None:
    frame = encode(9, {}, [("words", [ROW])])
    assert read_plain_commit(9, frame) is not None
    read = offset_commit.create_frame_reader(9, read_with_kio, partial(create_context, 9))
    with pytest.raises(MalformedRequest):
        read(frame[:-3], HOST)
    with pytest.raises(MalformedRequest):
        read(frame.replace(b"counts", b"count\xff"), HOST)
    with pytest.raises(MalformedRequest):
        read(frame[:9], HOST)


def test_a_client_id_in_another_encoding_is_left_to_kio() -> None:
    frame = encode(9, {}, [("words", [ROW])]).replace(b"web", b"we\xff")
    assert read_plain_commit(9, frame) is None
    _, context = read_with_kio(frame, HOST, 9)
    assert context.client_id == "we\ufffd"


@pytest.mark.parametrize("version", [7, 10])
def test_versions_of_another_form_are_left_to_kio(version: int) -> None:
    create = partial(create_context, version)
    assert offset_commit.create_frame_reader(version, read_with_kio, create) is read_with_kio


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("group_id", "generation"), [("counts", -1), ("none", 3)])
def test_a_plain_commit_is_answered_as_one_with_metadata(
    tmp_path: Path, version: int, group_id: str, generation: int
) -> None:
    client = Client(tmp_path)
    client.create("words", 2)

    def commit(metadata: str) -> Any:
        partitions = [
            dict(zip(PARTITION_FIELDS, (i, 7, -1, metadata), strict=True)) for i in (1, 0)
        ]
        return client.ask(
            offset_commit.API_KEY,
            version,
            **{**PLAIN, "group_id": group_id, "generation_id_or_member_epoch": generation},
            topics=[{"name": "words", "partitions": partitions}],
        )

    answer = commit("")
    assert answer == commit("m")
    [topic] = answer.topics
    codes = {each.partition_index: each.error_code for each in topic.partitions}
    unknown = Code.GROUP_ID_NOT_FOUND if version == 9 else Code.ILLEGAL_GENERATION
    assert codes == dict.fromkeys((0, 1), Code.NONE if generation < 0 else unknown)
