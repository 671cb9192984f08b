"""Test which settings of internal topics are altered since they would lose records."""

from __future__ import annotations

import logging

import pytest

from streams.errors import AuthorizationError, StreamsError
from streams.runtime.internal_topic_settings import find_losing_settings, mend_topic_settings
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

COMPACT = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
WINDOWS = COMPACT | {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
QUEUE = COMPACT | {"cleanup.policy": "delete", "retention.ms": "-1"}
VERSIONS = COMPACT | {"min.compaction.lag.ms": "500"}
DECLARED = WINDOWS | {"retention.ms": "50"}


@pytest.mark.parametrize(
    ("wanted", "found", "changes"),
    [
        (COMPACT, {}, {}),
        (COMPACT, {"retention.ms": "5"}, {}),
        (COMPACT, {"cleanup.policy": "delete"}, {"cleanup.policy": "compact"}),
        (COMPACT, {"cleanup.policy": "compact,delete"}, {"cleanup.policy": "compact"}),
        (COMPACT, {"message.timestamp.type": "LogAppendTime"}, COMPACT),
        (WINDOWS, {"retention.ms": "5"}, {"retention.ms": "-1"}),
        (WINDOWS, {"retention.bytes": "9"}, {"retention.bytes": "-1"}),
        (WINDOWS, {"cleanup.policy": "compact", "retention.ms": "5"}, {}),
        (WINDOWS, {"cleanup.policy": "compact, delete"}, {}),
        (QUEUE, {"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}),
        (QUEUE, {"retention.ms": "604800000"}, {"retention.ms": "-1"}),
        (VERSIONS, {"min.compaction.lag.ms": "499"}, {"min.compaction.lag.ms": "500"}),
        (VERSIONS, {"min.compaction.lag.ms": "501"}, {}),
        (DECLARED, {"retention.ms": "49"}, {"retention.ms": "50"}),
        (DECLARED, {"retention.ms": "50"}, {}),
        (DECLARED, {"retention.ms": "51"}, {}),
    ],
)
def test_what_would_lose_records_is_set_to_what_the_topic_is_created_with(
    wanted: dict[str, str], found: dict[str, str], changes: dict[str, str]
) -> None:
    expected = {name: value for name, value in changes.items() if found.get(name) != value}
    if "message.timestamp.type" in found:
        expected = {"message.timestamp.type": "CreateTime"}
    assert find_losing_settings(wanted, {**wanted, **found}) == expected


def create_admin(**settings: str) -> FakeAdmin:
    kafka = Kafka({"a-c-changelog": 1})
    kafka.topic_settings["a-c-changelog"] = {
        name.replace("_", "."): value for name, value in settings.items()
    }
    return FakeAdmin(kafka, Script())


def test_a_topic_that_would_lose_records_is_altered_and_the_log_says_from_what(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    admin = create_admin(cleanup_policy="delete", segment_ms="7")
    mend_topic_settings(admin, {"a-c-changelog": COMPACT}, {}, "kafka:9092")
    assert admin.fetch_topic_settings(["a-c-changelog"])["a-c-changelog"] == {
        "cleanup.policy": "compact",
        "segment.ms": "7",
    }
    assert "'a-c-changelog' would have lost records: altered cleanup.policy=delete" in caplog.text
    caplog.clear()
    mend_topic_settings(admin, {"a-c-changelog": COMPACT}, {}, "kafka:9092")
    assert not caplog.text


def test_a_topic_that_may_not_be_altered_is_refused_with_the_command() -> None:
    admin = create_admin(cleanup_policy="delete")
    error = AuthorizationError("AlterConfigs", "topic", "a-c-changelog")
    admin.script.fail("admin.alter_topic_settings", error)
    with pytest.raises(StreamsError) as raised:
        mend_topic_settings(
            admin, {"a-c-changelog": WINDOWS | {"cleanup.policy": "compact"}}, {}, "k:9"
        )
    assert "has cleanup.policy=delete, by which it would lose records" in str(raised.value)
    assert (
        "kafka-configs.sh --alter --entity-type topics --entity-name a-c-changelog --add-config "
        "'cleanup.policy=compact' --bootstrap-server k:9"
    ) in str(raised.value)


def test_a_topic_whose_settings_may_not_be_read_keeps_no_other_from_being_checked() -> None:
    admin = create_admin(cleanup_policy="delete")
    error = AuthorizationError("DescribeConfigs", "topic", "a-c-changelog")
    admin.script.fail("admin.fetch_topic_settings", error)
    mend_topic_settings(admin, {"a-c-changelog": COMPACT}, {}, "kafka:9092")
    assert admin.fetch_topic_settings(["a-c-changelog"])["a-c-changelog"] == {
        "cleanup.policy": "compact"
    }
