"""Test that a worker whose clock is off is found, by its commits and by /health."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from state.locks import LockHolder
from streams import App, serdes, windows
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor.findings import Verdict
from streams.doctor.local_workers import LocalWorker
from streams.doctor.worker_clocks import (
    check_clocks,
    find_commits_ahead,
    list_stamped_topics,
    name_owners,
)
from streams.monitoring.group_report import ActiveTask, GroupReport, MemberReport, PartitionLag
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.testing import TopologyTestDriver

NOW_MS, DAY_MS = 1_795_956_252_682, 86_400_000
LINE = Partition("lines", 0)


@pytest.mark.parametrize(
    ("number", "ahead_s"),
    [(NOW_MS + DAY_MS, 86_400), (NOW_MS + 29_000, None), (NOW_MS - DAY_MS, None), (None, None)],
)
def test_the_number_of_a_commit_is_the_clock_of_its_worker(
    number: int | None, ahead_s: float | None
) -> None:
    held = OffsetAndMetadata(5, encode_metadata({}, commit_number=number))
    found = find_commits_ahead({LINE: held}, NOW_MS)
    assert found == ({} if ahead_s is None else {LINE: ahead_s})


def test_clocks_that_are_right() -> None:
    (found,) = check_clocks({}, {"127.0.0.1:9": -0.9})
    assert found.verdict is Verdict.FINE


def test_a_clock_ahead_is_named_by_commits() -> None:
    (found,) = check_clocks({LINE: 172_800.0}, {"127.0.0.1:9": 0.1})
    assert (found.verdict, "2 days ahead" in found.what) == (Verdict.WARNING, True)
    assert "lines[0]" in found.what


@pytest.mark.parametrize(("seconds", "words"), [(90_000, "25 h ahead of"), (-40, "40 s behind")])
def test_a_clock_that_is_off_is_named_by_its_worker(seconds: float, words: str) -> None:
    (found,) = check_clocks({LINE: 90_000.0}, {"127.0.0.1:9": seconds})
    assert found.verdict is Verdict.WARNING
    assert f"the worker at 127.0.0.1:9 is {words}" in found.what


def test_the_member_that_has_the_partitions_is_named_with_its_process_here() -> None:
    def describe(number: int, host: str) -> MemberReport:
        task = ActiveTask(f"0_{number}", 0, [PartitionLag("lines", number, 1, 1, 0)])
        return MemberReport(
            *(f"m{number}", f"app-p{number}-0", host, f"p{number}", "d", {}, "t", 1),
            *([task], (), (), (), 0, ""),
        )

    members = [describe(0, "host-1"), describe(1, "host-2")]
    report = GroupReport("app", "Stable", 1, members, ())
    local = [LocalWorker("process-0", "p0", "process 77 (run app)", LockHolder(77, True))]
    owners = name_owners(report, local, Path("/state/app"))
    assert owners[LINE] == (
        "member app-p0-0 at host-1, on this machine process 77 (run app) in /state/app/process-0"
    )
    assert owners[Partition("lines", 1)] == "member app-p1-0 at host-2"
    (found,) = check_clocks({LINE: 90.0}, {}, owners)
    assert "now it is that of member app-p0-0 at host-1, on this machine process 77" in found.what
    assert "group describe" not in found.remedy


def build_hourly(extractor: Any) -> App:
    app = App("hourly", default_timestamp_extractor=extractor)
    counted = app.stream("lines", key=serdes.string, value=serdes.string).group_by_key()
    hours = counted.windowed_by(windows.tumbling(timedelta(hours=1), grace=timedelta(minutes=5)))
    hours.count(store="hours").to_stream().map(
        lambda window, count: (str(window), count), key=serdes.string, value=serdes.int64
    ).to("counts")
    return app


@pytest.mark.parametrize(
    ("extractor", "stamped"),
    [("wallclock", {"lines"}), ("fail_on_invalid_timestamp", set()), (lambda record: 1, set())],
)
def test_inputs_that_get_the_time_of_the_worker(extractor: Any, stamped: set[str]) -> None:
    assert list_stamped_topics(build_hourly(extractor).topology()) == stamped


def test_a_clock_that_was_ahead_makes_records_late_once_it_is_right() -> None:
    hour_ms, ahead_ms = 3_600_000, 3_240_000
    wall_clock_ms = 10 * hour_ms + 30 * 60_000
    shift_ms = ahead_ms
    app = build_hourly(lambda record: wall_clock_ms + shift_ms)
    with TopologyTestDriver(app) as driver:
        lines = driver.topic("lines")
        counts = driver.topic("counts")
        lines.pipe("k", "stamped ahead")
        assert len(counts.read_all()) == 1
        shift_ms = 0
        driver.restart()
        lines.pipe("k", "late, as stream time did not go back")
        assert counts.read_all() == []
        wall_clock_ms += ahead_ms
        lines.pipe("k", "the clock has caught up")
        assert len(counts.read_all()) == 1


@pytest.mark.parametrize("clocks", [{}, {"127.0.0.1:9": 3_240.0}])
def test_what_a_clock_ahead_does_to_records_that_it_stamps_is_told(
    clocks: dict[str, float],
) -> None:
    ahead = {LINE: 3_240.0}
    (stamped,) = check_clocks(ahead, clocks, {}, {"lines"})
    assert "each record of lines is stamped by that clock" in stamped.consequence
    assert "caught up with it (54 min): meanwhile records whose window" in stamped.remedy
    assert "are dropped as late" in stamped.remedy
    (own,) = check_clocks(ahead, clocks, {}, set())
    assert ("stamped by" in own.consequence, "late" in own.remedy) == (False, False)
    (unknown,) = check_clocks(ahead, clocks)
    assert "right, where timestamp_extractor is wallclock, stream time" in unknown.remedy


def test_a_clock_behind_holds_no_stream_time_ahead() -> None:
    (found,) = check_clocks({}, {"127.0.0.1:9": -3_240.0}, {}, {"lines"})
    assert "dropped as late" not in found.remedy
