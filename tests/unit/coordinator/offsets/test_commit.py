"""Test that the length of an offset's metadata is counted in UTF-16 units, as Java does."""

from __future__ import annotations

import pytest

from coordinator.offsets.commit import is_metadata_within_limit


@pytest.mark.parametrize(
    ("metadata", "most", "does"),
    [
        ("", 0, True),
        ("a", 0, False),
        ("a" * 10, 10, True),
        ("a" * 11, 10, False),
        ("ü" * 10, 10, True),
        ("漢" * 11, 10, False),
        ("😀" * 5, 10, True),
        ("😀" * 5 + "a", 10, False),
        ("😀" * 6, 10, False),
        ("😀", 1, False),
    ],
)
def test_a_character_beyond_u_ffff_counts_for_two(metadata: str, most: int, does: bool) -> None:
    assert is_metadata_within_limit(metadata, most) is does
