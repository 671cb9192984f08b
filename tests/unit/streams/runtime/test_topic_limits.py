"""Test that a topic's settings tell which records its brokers are certain to refuse."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from streams.errors import AuthorizationError
from streams.runtime.clients.topic_limits import (
    TopicLimits,
    create_limit_lookup,
    find_change_limit,
)

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SETTINGS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1000",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(24 * HOUR_MS),
    "message.timestamp.after.max.ms": str(HOUR_MS),
}


def find_code(changes: dict[str, str], record: dict[str, Any], *, compression: str = "none") -> int:
    """Return the code with which a record is refused; 0 if it may be taken."""
    lookup = create_limit_lookup(
        lambda topics: {topic: {**SETTINGS, **changes} for topic in topics},
        {"compression.type": compression},
    )
    limits = lookup("out")
    assert limits is not None
    given = {"key": b"k", "value": b"v", "timestamp_ms": NOW_MS, "now_ms": NOW_MS, **record}
    error = limits.find_refusal(**given)
    return 0 if error is None else int(error.code())


COMPACT = {"cleanup.policy": "compact,delete"}
APPEND = {"message.timestamp.type": "LogAppendTime"}


@pytest.mark.parametrize(
    ("changes", "record", "code"),
    [
        ({}, {}, 0),
        ({}, {"key": None}, 0),
        (COMPACT, {"key": None}, KafkaError.INVALID_RECORD),
        (COMPACT, {"value": None}, 0),
        ({}, {"value": b"x" * 1_000}, KafkaError.MSG_SIZE_TOO_LARGE),
        ({}, {"value": b"x" * 999}, 0),  # with its header it is too large: a broker says so
        ({}, {"timestamp_ms": NOW_MS + 2 * HOUR_MS}, KafkaError.INVALID_TIMESTAMP),
        ({}, {"timestamp_ms": NOW_MS + HOUR_MS + 1_000}, 0),  # clocks differ
        ({}, {"timestamp_ms": NOW_MS - 25 * HOUR_MS}, KafkaError.INVALID_TIMESTAMP),
        ({}, {"timestamp_ms": NOW_MS - 24 * HOUR_MS - 1_000}, 0),
        ({}, {"timestamp_ms": 0}, 0),
        ({}, {"timestamp_ms": -1}, 0),
        (APPEND, {"timestamp_ms": NOW_MS + 2 * HOUR_MS}, 0),
    ],
)
def test_a_record_that_the_settings_exclude_is_known(
    changes: dict[str, str], record: dict[str, Any], code: int
) -> None:
    assert find_code(changes, record) == code


def test_a_record_that_is_compressed_may_be_small_enough() -> None:
    assert find_code({}, {"value": b"x" * 9_000}, compression="zstd") == 0


@pytest.mark.parametrize(
    "settings", [{}, {"out": {}}, {"out": {**SETTINGS, "max.message.bytes": "many"}}]
)
def test_settings_that_are_not_known_exclude_nothing(settings: Any) -> None:
    assert create_limit_lookup(lambda topics: settings, {})("out") is None


def test_settings_that_may_not_be_described_exclude_nothing() -> None:
    def refuse(topics: list[str]) -> Any:
        raise AuthorizationError("DescribeConfigs", "topic", "out")

    assert create_limit_lookup(refuse, {})("out") is None


def test_a_topic_without_limits_excludes_nothing() -> None:
    assert TopicLimits().find_refusal(None, b"x" * 10_000_000, 2 * NOW_MS, 0) is None


@pytest.mark.parametrize(
    ("size", "limits", "expected"),
    [
        (1_000_001, None, (1_000_000, "message.max.bytes of the producer")),
        (900_000, None, None),
        (900_000, TopicLimits(bytes_max=None), None),  # it is compressed
        (990, TopicLimits(bytes_max=1_000), (932, "max.message.bytes=1000 of 'c'")),
        (930, TopicLimits(bytes_max=1_000), (929, "max.message.bytes=1000 of 'c'")),
        (2_000_000, TopicLimits(bytes_max=5_000_000), (1_000_000, "message.max.bytes of the pro")),
    ],
)
def test_what_a_changelog_takes_is_known_where_it_is_certain(
    size: int, limits: TopicLimits | None, expected: tuple[int, str] | None
) -> None:
    found = find_change_limit("c", size, limits, 1_000_000)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.bytes_max == expected[0]
        assert found.reason.startswith(expected[1])
