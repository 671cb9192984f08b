"""Test that what Kafka Streams commits with an offset is read, and nothing else is taken for it."""

from __future__ import annotations

import base64
import struct

import pytest

from streams.runtime.offsets.kafka_streams_metadata import (
    KafkaStreamsMetadata,
    decode_kafka_streams_metadata,
)
from streams.runtime.offsets.offset_metadata import encode_metadata


def encode(*parts: bytes) -> str:
    return base64.b64encode(b"".join(parts)).decode()


HEAD = struct.pack(">bq", 2, 1_000)
FIGURE = struct.pack(">i", 5) + b"store" + struct.pack(">q", 60_000)


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (encode(HEAD), {}),
        (encode(HEAD, struct.pack(">i", 0)), {}),
        (encode(HEAD, struct.pack(">i", 1), FIGURE), {"store": 60_000}),
        (encode(struct.pack(">bq", 1, 1_000)), {}),
    ],
)
def test_the_time_of_the_partition_and_figures_of_processors_are_read(
    text: str, figures: dict[str, int]
) -> None:
    assert decode_kafka_streams_metadata(text) == KafkaStreamsMetadata(1_000, figures)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "set by hand",
        encode_metadata({"store": 5}),
        encode(struct.pack(">bq", 3, 1_000)),
        encode(HEAD, struct.pack(">i", 1), FIGURE[:-1]),
        encode(HEAD[:-1]),
    ],
)
def test_what_another_program_wrote_is_none_of_it(text: str) -> None:
    assert decode_kafka_streams_metadata(text) is None
