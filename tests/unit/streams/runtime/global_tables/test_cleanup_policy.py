"""Test that a global table's topic which removes rows by itself is named."""

from __future__ import annotations

import pytest

from streams import App, serdes
from streams.errors import AuthenticationError, AuthorizationError, OutcomeUnknown
from streams.runtime.global_tables.cleanup_policy import CleanupPolicyCheck, removes_rows
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

COMPACT = {"cleanup.policy": "compact", "retention.ms": "1000"}
DELETE = {"cleanup.policy": "delete", "retention.ms": "1000", "retention.bytes": "-1"}
INTERVAL_S = 300.0


class Checking:
    """Holds a check of the topic `rows`, and of `others`, that a clock drives."""

    def __init__(self, *others: str) -> None:
        app = App("a")
        for topic in others:
            app.global_table(topic, key=serdes.string, value=serdes.string, store=f"of-{topic}")
        app.global_table("rows", key=serdes.string, value=serdes.string, store="kept")
        app.stream("in", key=serdes.string, value=serdes.string).to("out")
        self.clock, self.script, self.kafka = (
            Clock(),
            Script(),
            Kafka(dict.fromkeys(("rows", *others), 1)),
        )
        admin = FakeAdmin(self.kafka, self.script)
        tables = app.topology().global_tables
        self.check = CleanupPolicyCheck(tables, admin, self.clock, INTERVAL_S)

    def warn(self, caplog: pytest.LogCaptureFixture, settings: dict[str, str]) -> str:
        """Return what is logged when the topic has these settings; then an interval passes."""
        caplog.clear()
        self.kafka.topic_settings["rows"] = settings
        self.check.warn_if_due()
        self.clock.advance_monotonic_clock(INTERVAL_S)
        return caplog.text


def test_a_topic_that_is_altered_to_remove_rows_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    checking = Checking()
    assert checking.warn(caplog, COMPACT) == ""
    text = checking.warn(caplog, DELETE)
    assert "topic 'rows' of global table 'kept' has cleanup.policy=delete" in text
    assert "retention.ms=1000" in text
    assert checking.warn(caplog, DELETE) == ""
    assert checking.warn(caplog, COMPACT) == ""
    assert "cleanup.policy=delete" in checking.warn(caplog, DELETE)


def test_brokers_are_asked_once_in_an_interval(caplog: pytest.LogCaptureFixture) -> None:
    checking = Checking()
    checking.warn(caplog, COMPACT)
    checking.check.warn_if_due()
    checking.check.warn_if_due()
    assert checking.script.calls.count("admin.fetch_topic_settings") == 2


def test_settings_that_can_not_be_read_stop_no_copy(caplog: pytest.LogCaptureFixture) -> None:
    checking = Checking()
    checking.script.fail("admin.fetch_topic_settings", OutcomeUnknown("away"))
    assert checking.warn(caplog, DELETE) == ""
    assert "cleanup.policy=delete" in checking.warn(caplog, DELETE)


def test_a_topic_whose_settings_may_not_be_read_hides_no_other_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    checking = Checking("hidden")
    call = "admin.fetch_topic_settings"
    checking.script.fail(call, AuthorizationError("DescribeConfigs", "topic", "hidden"), at=1)
    checking.script.fail(call, AuthorizationError("DescribeConfigs", "topic", "hidden"), at=3)
    text = checking.warn(caplog, DELETE)
    assert "'hidden' are not known: not allowed to DescribeConfigs" in text
    assert "topic 'rows' of global table 'kept' has cleanup.policy=delete" in text
    assert checking.warn(caplog, DELETE) == ""


def test_where_no_broker_answers_no_further_topic_is_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    checking = Checking("more")
    checking.script.fail("admin.fetch_topic_settings", OutcomeUnknown("away"))
    checking.warn(caplog, DELETE)
    assert checking.script.calls.count("admin.fetch_topic_settings") == 1


def test_a_refused_security_is_not_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    checking = Checking()
    checking.script.fail("admin.fetch_topic_settings", AuthenticationError("refused"))
    with pytest.raises(AuthenticationError, match="refused"):
        checking.warn(caplog, DELETE)


@pytest.mark.parametrize(
    ("settings", "removes"),
    [
        (COMPACT, False),
        (DELETE, True),
        ({**DELETE, "retention.ms": "-1"}, False),
        ({**DELETE, "retention.ms": "-1", "retention.bytes": "9"}, True),
        ({**DELETE, "cleanup.policy": "compact,delete"}, True),
        ({}, False),
    ],
)
def test_rows_are_removed_by_time_or_size_where_the_policy_deletes(
    settings: dict[str, str], removes: bool
) -> None:
    assert removes_rows(settings) is removes
