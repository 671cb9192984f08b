"""Test that a number and its noun agree."""

from __future__ import annotations

import pytest

from streams.common.counted import format_count, join_distinct


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (12_000, "12,000 records")],
)
def test_a_noun_is_singular_for_one(count: int, text: str) -> None:
    assert format_count(count, "record") == text


def test_a_plural_that_is_no_s_is_given() -> None:
    assert format_count(2, "entry", "entries") == "2 entries"


def test_a_text_that_repeats_is_there_once_with_its_number() -> None:
    assert join_distinct(["late", "lost", "late", "late"]) == "late (3 times), lost"
    assert join_distinct([]) == ""
