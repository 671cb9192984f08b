"""Test that names which programs, dashboards and scripts outside rely on are kept."""

from __future__ import annotations

import json

import pytest

from tests.unit.docs.public_names import KEPT, find_public_names, missing_names


@pytest.fixture(name="names", scope="module")
def _names() -> dict[str, list[str]]:
    return find_public_names()


def test_every_kept_name_is_still_there(names: dict[str, list[str]]) -> None:
    """Test that no kept name is missing; who removes one on purpose notes it in the CHANGELOG."""
    assert missing_names(json.loads(KEPT.read_text()), names) == {}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("python", "millrace.App"),
        ("python", "millrace.broker.EmbeddedBroker"),
        ("python", "streams.App"),
        ("python", "App.stream().map_values(mapper) at 1"),
        ("python", "App.table().join(foreign_key)"),
        ("python", "DriverTopic.read_table"),
        ("python", "Serde.serialize"),
        ("settings", "processing_guarantee"),
        ("broker settings", "transaction_state_log_num_partitions"),
        ("topic configs", "cleanup.policy"),
        ("group configs", "consumer.session.timeout.ms"),
        ("commands", "millrace run --workers"),
        ("commands", "python -m coordinator --data"),
        ("metrics", "millrace_worker_healthy"),
        ("metrics", "millrace_thread_commits_total"),
        ("make targets", "demo"),
        ("crash steps", "PRODUCED"),
        ("faults", "lose-answer"),
    ],
)
def test_a_name_that_is_gone_is_found(names: dict[str, list[str]], kind: str, name: str) -> None:
    found = {**names, kind: [each for each in names[kind] if each != name]}
    assert missing_names(names, found) == {kind: [name]}


def test_a_keyword_may_be_given_by_position_too_and_not_the_other_way_round() -> None:
    keyword, position = {"python": ["f(key)"]}, {"python": ["f(key) at 1"]}
    assert missing_names(keyword, position) == {}
    assert missing_names(position, keyword) == position
