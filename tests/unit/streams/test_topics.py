"""Test patterns of topics: RE2's expressions, which match whole names."""

from __future__ import annotations

import pytest

from streams import TopologyError, topics
from streams.topics import is_pattern, parse_pattern


@pytest.mark.parametrize(
    ("expression", "matching", "others"),
    [
        (r"orders-.*", ["orders-", "orders-eu"], ["orders", "my-orders-eu"]),
        (r"a|b", ["a", "b"], ["ab"]),
        (r"(?i)Orders", ["orders", "ORDERS"], ["orders-eu"]),
        (r"orders\.[a-z]+", ["orders.eu"], ["orders-eu", "orders."]),
    ],
)
def test_an_expression_matches_whole_names(
    expression: str, matching: list[str], others: list[str]
) -> None:
    pattern = topics.matching(expression)
    assert pattern.find_matching([*others, *matching]) == tuple(sorted(matching))


@pytest.mark.parametrize("expression", ["(", "(?=a)b", r"(a)\1", "a{2000}"])
def test_what_is_no_expression_of_re2_is_refused_by_name(expression: str) -> None:
    with pytest.raises(TopologyError) as refused:
        topics.matching(expression)
    assert f"topics.matching({expression!r}) is no expression of RE2: " in str(refused.value)


@pytest.mark.parametrize("expression", ["", None, 5])
def test_what_is_no_text_is_refused(expression: object) -> None:
    with pytest.raises(TopologyError, match="takes an expression"):
        topics.matching(expression)  # type: ignore[arg-type]


def test_a_pattern_stands_in_a_topology_as_text_that_no_topic_can_have() -> None:
    pattern = topics.matching("^orders-.*")
    assert is_pattern(pattern.text)
    assert parse_pattern(pattern.text) == pattern
    assert not is_pattern("orders-eu")


@pytest.mark.parametrize(
    ("expression", "prefix"),
    [
        (r"orders-.*", "orders-"),
        (r"orders\.eu-[0-9]+", "orders.eu-"),
        (r"orders?", "order"),
        (r"a|b", ""),
        (r"(?i)a", ""),
        (r".*", ""),
        (r"ordersx*", "orders"),
    ],
)
def test_the_prefix_of_all_names_is_seen(expression: str, prefix: str) -> None:
    assert topics.matching(expression).prefix == prefix
