"""Test that a broker's release is estimated by the versions of its APIs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coordinator.api.router import list_api_versions
from streams.membership.kafka_release import (
    KafkaRelease,
    estimate_release,
    explain_missing_api,
    format_release,
)
from tests.conformance.kafka_versions import KAFKA_4_4

# Highest versions that nodes of these releases have told.
KAFKA_2_8 = {0: 9, 1: 12, 3: 11, 9: 7, 10: 3, 11: 7, 16: 4, 24: 3, 28: 3, 35: 2, 61: 0}
KAFKA_3_6 = {
    0: 9,
    1: 15,
    3: 12,
    9: 8,
    10: 4,
    11: 9,
    16: 4,
    24: 4,
    28: 3,
    35: 4,
    61: 0,
    65: 0,
    66: 0,
}
KAFKA_3_9 = {
    0: 11,
    1: 17,
    3: 12,
    9: 9,
    10: 6,
    11: 9,
    16: 5,
    24: 5,
    28: 4,
    35: 4,
    61: 0,
    65: 0,
    66: 1,
}
KAFKA_4_0 = {
    0: 12,
    1: 17,
    3: 13,
    9: 9,
    10: 6,
    11: 9,
    16: 5,
    24: 5,
    28: 5,
    35: 4,
    61: 0,
    65: 0,
    66: 1,
}


@pytest.mark.parametrize(
    ("api_versions", "release"),
    [
        (KAFKA_2_8, (2, 8)),
        (KAFKA_3_6, (3, 6)),
        (KAFKA_3_9, (3, 9)),
        (KAFKA_4_0, (4, 0)),
        ({key: last for key, (_, last) in KAFKA_4_4.items()}, (4, 4)),
        ({**KAFKA_2_8, 9: 6, 16: 3, 1: 11, 3: 9}, None),
        ({}, None),
    ],
)
def test_the_newest_release_whose_versions_are_there_is_taken(
    api_versions: Mapping[int, int], release: tuple[int, int] | None
) -> None:
    assert estimate_release(api_versions) == release


def test_the_embedded_broker_is_of_4_3() -> None:
    ours = {each["api_key"]: each["max_version"] for each in list_api_versions()}
    assert estimate_release(ours) == (4, 3)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (None, "a Kafka older than 2.5"),
        (KafkaRelease(3, 3), "Kafka 3.3 or 3.4"),
        (KafkaRelease(3, 9), "Kafka 3.9"),
        (KafkaRelease(4, 4), "Kafka 4.4 or newer"),
    ],
)
def test_words_say_no_more_than_is_known(release: KafkaRelease | None, words: str) -> None:
    assert format_release(release) == words


def test_an_api_that_came_later_is_named_with_its_release_and_the_brokers() -> None:
    assert explain_missing_api(66, KAFKA_2_8) == (
        "the broker doesn't serve ListTransactions, which Kafka has from 3.0 on: by its API "
        "versions it is of Kafka 2.8"
    )
