"""Test that tables are named which may have missed deletions that were compacted away."""

from __future__ import annotations

import pytest

from streams import App, serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import AuthorizationError
from streams.runtime.offsets.missed_deletions import MissedDeletionCheck
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.topology.build import Topology
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

ROWS = Partition("rows", 0)
DAY_MS = 86_400_000
COMPACTED = {"cleanup.policy": "compact", "delete.retention.ms": str(DAY_MS)}


def reading_a_table() -> Topology:
    """Build a topology that joins a stream with a table."""
    app = App("a")
    table = app.table("rows", key=serdes.string, value=serdes.string, store="kept")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.join(table, lambda left, right: left + right)
    return app.topology()


class Stopped:
    """Represents a table whose offset was committed some time ago, and what came since."""

    def __init__(
        self,
        stopped_ms: int,
        record_ages_ms: list[int],
        committed_ms: int | None = None,
        **settings: str,
    ) -> None:
        self.clock, self.script = Clock(), Script()
        self.clock.advance_monotonic_clock(30 * DAY_MS / 1_000)
        now_ms = self.clock.now_ms()
        self.kafka = Kafka({"in": 1, "rows": 1})
        self.kafka.topic_settings["rows"] = {
            name.replace("_", "."): value for name, value in settings.items()
        } or COMPACTED
        for age_ms in [stopped_ms, stopped_ms, *record_ages_ms]:
            self.kafka.append_record(ROWS, b"k", b"v", now_ms - age_ms)
        metadata = encode_metadata({}, commit_number=now_ms - (committed_ms or stopped_ms))
        self.committed = {ROWS: OffsetAndMetadata(2, metadata)}
        self.admin = FakeAdmin(self.kafka, self.script)
        self.check = MissedDeletionCheck(reading_a_table(), self.admin, self.clock)

    def warn(self, caplog: pytest.LogCaptureFixture) -> str:
        caplog.clear()
        self.check.warn_of_missed_deletions(self.committed)
        return caplog.text


def test_a_table_whose_topic_has_gone_on_for_longer_than_it_keeps_deletions_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stopped = Stopped(3 * DAY_MS, [2 * DAY_MS, 1_000])
    text = stopped.warn(caplog)
    assert "table 'kept' may keep rows that were deleted: rows[0] at 2" in text
    assert "committed 259200 s ago" in text
    assert "keeps deletions for 86400 s (delete.retention.ms)" in text
    assert "group reset" in text
    assert stopped.warn(caplog) == ""


@pytest.mark.parametrize(
    "stopped",
    [
        lambda: Stopped(DAY_MS - 1_000, [1_000]),
        lambda: Stopped(3 * DAY_MS, [2 * DAY_MS], committed_ms=DAY_MS - 1_000),
        lambda: Stopped(3 * DAY_MS, []),
        lambda: Stopped(3 * DAY_MS, [DAY_MS - 1_000]),
        lambda: Stopped(3 * DAY_MS, [2 * DAY_MS], cleanup_policy="delete"),
        lambda: Stopped(-3 * DAY_MS, [1_000]),
    ],
    ids=[
        "not so long",
        "records of old times",
        "nothing new",
        "all new is young",
        "not compacted",
        "clock set back",
    ],
)
def test_a_table_that_can_read_all_deletions_is_not_named(
    stopped: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(stopped)
    assert stopped().warn(caplog) == ""


def test_brokers_are_not_asked_for_an_offset_that_was_committed_a_moment_ago(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stopped = Stopped(500, [100])
    assert stopped.warn(caplog) == ""
    assert not any(call.startswith("admin.") for call in stopped.script.calls)


def test_settings_that_may_not_be_read_keep_no_application_from_its_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    stopped = Stopped(3 * DAY_MS, [2 * DAY_MS])
    stopped.script.fail(
        "admin.fetch_topic_settings", AuthorizationError("DescribeConfigs", "topic", "rows")
    )
    assert "for how long deletions of tables ['rows'] are kept is not known" in stopped.warn(caplog)
    assert stopped.warn(caplog) == ""
