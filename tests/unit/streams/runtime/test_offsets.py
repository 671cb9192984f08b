"""The metadata of offsets: it comes back as it was given, and nobody else's is taken for it."""

from __future__ import annotations

import pytest

from streams.runtime.offsets import decode_metadata, encode_metadata


@pytest.mark.parametrize("positions", [{}, {"c": 0}, {"left": 7, "right": 2**62}, {"ström": 1}])
def test_positions_come_back_as_they_were_given(positions: dict[str, int]) -> None:
    assert decode_metadata(encode_metadata(positions)) == positions


def test_the_format_is_the_documented_one() -> None:
    assert encode_metadata({"counts": 12}) == '{"v":1,"c":{"counts":12}}'


@pytest.mark.parametrize(
    "metadata",
    ["", "AgAAAZfF2mA=", "{", "null", "7", "[1]", '{"v":2,"c":{"a":1}}', '{"c":{"a":1}}'],
    ids=["none", "Kafka Streams", "torn", "null", "number", "list", "later format", "no format"],
)
def test_metadata_of_others_names_no_position(metadata: str) -> None:
    assert decode_metadata(metadata) == {}
