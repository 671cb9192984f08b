"""Test that the metadata of offsets survives encoding and is not confused with foreign metadata.

Metadata that a broker would refuse is refused before anything runs.
"""

from __future__ import annotations

import base64
import struct
import zlib

import pytest

from streams import App, Store, serdes, windows
from streams.errors import ConfigError
from streams.runtime.offsets.metadata_sizes import check_metadata_sizes
from streams.runtime.offsets.offset_metadata import (
    FirstStart,
    decode_metadata,
    encode_metadata,
)
from streams.topology.build import Topology

KAFKAS_DEFAULT = 4_096


def with_stores(*names: str) -> Topology:
    app = App("a")
    grouped = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    for name in names:
        grouped.count(store=Store.persistent(name))
    return app.topology()


def kafka_streams(version: int, time_ms: int, more: bytes = b"") -> str:
    """Encode metadata as TopicPartitionMetadata.encode of Kafka Streams does."""
    return base64.b64encode(struct.pack(">bq", version, time_ms) + more).decode()


@pytest.mark.parametrize("positions", [{}, {"c": 0}, {"left": 7, "right": 2**62}, {"ström": 1}])
@pytest.mark.parametrize("time_ms", [-1, 0, 1_700_000_000_000])
def test_what_was_given_comes_back(positions: dict[str, int], time_ms: int) -> None:
    metadata = decode_metadata(encode_metadata(positions, time_ms))
    assert {store: metadata.position_of_store(store) for store in positions} == positions
    assert metadata.partition_time_ms == time_ms
    assert metadata.position_of_store("another") is None


def test_the_time_of_a_step_comes_back_and_is_no_store_of_its_name() -> None:
    metadata = decode_metadata(encode_metadata({"count": 7}, 5, {"count": 9, "sum": -1}))
    assert (metadata.position_of_store("count"), metadata.time_of_step("count")) == (7, 9)
    assert (metadata.time_of_step("sum"), metadata.time_of_step("another")) == (-1, -1)


@pytest.mark.parametrize("number", [0, 1, 1_700_000_000_000, 2**62])
def test_the_number_of_a_commit_comes_back(number: int) -> None:
    metadata = decode_metadata(encode_metadata({"counts": 12}, 7, {"s": 9}, number))
    assert metadata.commit_number == number
    assert (
        metadata.position_of_store("counts"),
        metadata.partition_time_ms,
        metadata.time_of_step("s"),
    ) == (12, 7, 9)
    assert decode_metadata(encode_metadata({"counts": 12}, 7)).commit_number is None


def test_the_release_before_reads_on_where_a_commit_has_a_number() -> None:
    """Test that the previous release can read metadata with a commit number.

    It takes the text as pairs of a CRC-32 and a number, and looks up those that it knows.
    """
    text = encode_metadata({"counts": 12}, 7, None, 3)
    data = base64.b64decode(text.removeprefix("M2."))
    found = dict(struct.iter_unpack(">Iq", data[8:]))
    assert int.from_bytes(data[:8], "big") == 7
    assert found == {0xB837163B: 12, zlib.crc32(b"number of the commit"): 3}


@pytest.mark.parametrize(("stores", "numbered"), [(254, True), (255, False)])
def test_the_number_is_left_out_where_a_broker_would_not_take_it(
    stores: int, numbered: bool
) -> None:
    positions = {f"s{number}": 2**63 - 1 for number in range(stores)}
    text = encode_metadata(positions, 2**63 - 1, None, 2**63 - 1)
    assert len(text) + 1 <= KAFKAS_DEFAULT
    assert (decode_metadata(text).commit_number is not None) == numbered


@pytest.mark.parametrize(("room", "numbered"), [(0, False), (15, False), (16, True)])
def test_an_application_that_fits_without_the_number_of_commits_is_not_refused_for_it(
    room: int, numbered: bool
) -> None:
    """Test that the commit number is omitted where only it exceeds a broker's limit.

    A broker may take less than by default.
    """
    names = [f"s{number}" for number in range(10)]
    limit = len(encode_metadata(dict.fromkeys(names, 0), 0)) + 1 + room
    check_metadata_sizes(with_stores(*names), limit)
    with pytest.raises(ConfigError, match="bytes, and the brokers take"):
        check_metadata_sizes(with_stores(*names), limit - room - 1)
    text = encode_metadata(dict.fromkeys(names, 2**63 - 1), 2**63 - 1, None, 3, limit)
    assert len(text) + 1 <= limit
    assert (decode_metadata(text).commit_number is not None) == numbered


def test_the_times_of_steps_count_in_what_a_broker_takes() -> None:
    app = App("a")
    grouped = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    for number in range(130):
        grouped.windowed_by(windows.tumbling(10)).count(name=f"step-{number}")
    with pytest.raises(ConfigError, match="bytes, and the brokers take"):
        check_metadata_sizes(app.topology(), KAFKAS_DEFAULT)


def test_the_format_is_the_documented_one() -> None:
    text = encode_metadata({"counts": 12}, 7)
    crc_32 = 0xB837163B
    assert text == "M2." + base64.b64encode(struct.pack(">qIq", 7, crc_32, 12)).decode()


@pytest.mark.parametrize(
    "metadata",
    [
        *[
            "",
            "{",
            "null",
            "7",
            "[1]",
            '{"v":2,"c":{"a":1}}',
            '{"c":{"a":1}}',
            '{"v":1,"c":{"a":1}}',
        ],
        *["M2.", "M2.!", "M2.AAAA", "M3.AAAAAAAAAAA=", "a person's note"],
    ],
)
def test_metadata_of_others_say_nothing(metadata: str) -> None:
    found = decode_metadata(metadata)
    assert (found.position_of_store("a"), found.partition_time_ms) == (None, -1)


@pytest.mark.parametrize("version", [1, 2])
def test_kafka_streams_metadata_name_no_position_and_their_time_is_used(version: int) -> None:
    found = decode_metadata(kafka_streams(version, 1_700_000_000_000, b"\0\0\0\0"))
    assert found.partition_time_ms == 1_700_000_000_000
    assert found.position_of_store("a") is None


def test_an_unknown_version_of_kafka_streams_says_nothing() -> None:
    assert decode_metadata(kafka_streams(3, 1_700_000_000_000)).partition_time_ms == -1


def test_two_hundred_stores_with_the_longest_names_fit() -> None:
    check_metadata_sizes(
        with_stores(*(f"{number:03}" + "s" * 200 for number in range(250))), KAFKAS_DEFAULT
    )


@pytest.mark.parametrize(("stores", "fits"), [(254, True), (255, True), (256, False)])
def test_what_is_refused_is_what_a_broker_would_refuse(stores: int, fits: bool) -> None:
    """Test that the limit counts the text and the NUL byte with which librdkafka ends it."""
    names = [f"s{number}" for number in range(stores)]
    longest = encode_metadata(dict.fromkeys(names, 2**63 - 1), 2**63 - 1)
    assert (len(longest) + 1 <= KAFKAS_DEFAULT) == fits
    if fits:
        check_metadata_sizes(with_stores(*names), KAFKAS_DEFAULT)
    else:
        with pytest.raises(
            ConfigError, match=r"sub-topology 0 has 256 stores \(s0, s1.*4112 bytes"
        ):
            check_metadata_sizes(with_stores(*names), KAFKAS_DEFAULT)


def test_a_broker_that_takes_less_is_named_with_what_it_takes() -> None:
    with pytest.raises(ConfigError, match=r"s0.*32 bytes.*take 20 \(offset\.metadata\.max\.bytes"):
        check_metadata_sizes(with_stores("s0"), 20)


def test_names_that_can_not_be_told_apart_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'store-29685295' and 'store-32060020'.*same CRC-32"):
        check_metadata_sizes(with_stores("store-29685295", "store-32060020"), KAFKAS_DEFAULT)


def test_ids_of_inputs_stand_beside_stores_of_the_same_name() -> None:
    ids = {"in": 2**63 - 1, "other": 0}
    metadata = decode_metadata(encode_metadata({"in": 4}, 7, None, 3, topic_ids=ids))
    assert {topic: metadata.topic_id_hash(topic) for topic in ids} == ids
    assert metadata.topic_id_hash("third") is None
    assert (metadata.position_of_store("in"), metadata.commit_number) == (4, 3)
    assert decode_metadata(encode_metadata({"in": 4}, 7)).topic_id_hash("in") is None


def test_ids_of_changelogs_stand_beside_those_of_inputs_of_the_same_name() -> None:
    metadata = decode_metadata(
        encode_metadata({"in": 4}, 7, topic_ids={"in": 5}, changelog_ids={"in": 2**63 - 1})
    )
    found = metadata.position_of_store("in"), metadata.topic_id_hash("in")
    assert (*found, metadata.changelog_id_hash("in")) == (4, 5, 2**63 - 1)
    assert metadata.changelog_id_hash("other") is None


def test_ids_of_changelogs_are_left_out_where_there_is_no_room() -> None:
    full = encode_metadata({"s": 4}, 7, None, 3, topic_ids={"in": 1})
    encoded = encode_metadata(
        *({"s": 4}, 7, None, 3, len(full) + 1), topic_ids={"in": 1}, changelog_ids={"s": 1}
    )
    assert encoded == full


def test_ids_of_inputs_are_left_out_where_there_is_no_room() -> None:
    full = encode_metadata({"s": 4}, 7, None, 3)
    limit = len(full) + 1
    assert encode_metadata({"s": 4}, 7, None, 3, limit, topic_ids={"in": 1}) == full


def test_an_id_of_an_input_with_the_hash_of_a_store_is_refused() -> None:
    app = App("a")
    topic, store = "in-d96409bf", "store-235f5"
    app.stream(topic, key=serdes.string, value=serdes.string).group_by_key().count(store=store)
    with pytest.raises(ConfigError, match=f"'{store}' and 'id of {topic}'"):
        check_metadata_sizes(app.topology(), KAFKAS_DEFAULT)


def test_the_first_start_comes_back_but_for_what_there_is_no_room_for() -> None:
    first = FirstStart(at_ms=1_700_000_000_000, partition_count=12)
    with_one, with_both = (encode_metadata(dict.fromkeys("abc"[:n], 1)) for n in (1, 2))
    given = encode_metadata({}, first_start=first)
    assert len(given) == len(with_both)
    assert decode_metadata(given).first_start == first
    assert decode_metadata(with_both).first_start is None
    assert encode_metadata({}, first_start=first, bytes_max=len(with_both) + 1) == given
    short = encode_metadata({}, first_start=first, bytes_max=len(with_one) + 1)
    assert short == encode_metadata({})
    further = first._replace(offset=2**40)
    assert decode_metadata(encode_metadata({}, first_start=further)).first_start == further
    assert encode_metadata({}, first_start=further, bytes_max=len(given) + 1) == given
    assert encode_metadata({}, first_start=further, bytes_max=len(with_one) + 1) == short


def test_what_has_expired_of_windows_with_the_hash_of_a_store_is_refused() -> None:
    app = App("a")
    windowed, store = "windows-1205995", "a-store-named-104a0"
    words = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    words.windowed_by(windows.tumbling(1_000, grace=0)).count(store=windowed)
    words.count(store=store)
    with pytest.raises(ConfigError, match=f"'{store}' and 'expired offset of {windowed}'"):
        check_metadata_sizes(app.topology(), KAFKAS_DEFAULT)
