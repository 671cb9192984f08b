"""Test that the page of the broker lists each version of an API that it does not have."""

from __future__ import annotations

import pytest

from tests.conformance.kafka_versions import PAGE, create_table, find_left_out, replace_table


def test_the_page_says_which_versions_the_broker_leaves_out() -> None:
    text = PAGE.read_text()
    assert replace_table(text) == text, "python -m tests.conformance.kafka_versions writes it anew"


def test_an_api_that_the_broker_has_in_fewer_versions_is_left_out() -> None:
    assert find_left_out()[28] == (0, 5)
    assert "| TxnOffsetCommit (28) | 0 to 6 | 0 to 5 |" in create_table().splitlines()


def test_a_page_without_the_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="the page has no <!-- versions left out -->"):
        replace_table("a page")
