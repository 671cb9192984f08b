"""Test that the cause of each recorded fault is named.

`tests.logs.record` has planted the faults and recorded the logs.
"""

from __future__ import annotations

import pytest

from streams.log_analysis.report import LogAnalysisOutput, analyze_logs
from streams.log_analysis.sources import LogSource
from tests.logs.recorded_text import RECORDED, read_recording

CAUSES = {
    "ours-fenced": "MR-010",
    "ours-fenced-json": "MR-010",
    "ours-stopped": "MR-034",
    "ours-transaction-timed-out": "MR-063",
    "ours-broker-killed": "MR-040",
    "ours-changelog-deleted": "MR-024",
    "ours-store-damaged": "MR-020",
    "ours-poison-record": "MR-072",
    "ours-slow-step": "MR-034",
    "ours-disk-full": "MR-062",
    "ours-wrong-credentials": "MR-043",
    "streams-fenced": "MR-010",
    "streams-stopped": "MR-011",
    "streams-transaction-timed-out": "MR-011",
    "streams-left-group": "MR-034",
    "streams-changelog-deleted": "MR-024",
    "streams-poison-record": "MR-072",
    "streams-broker-killed": "MR-040",
    "streams-wrong-credentials": "MR-043",
    "kafka-stopped": "MR-012",
    "kafka-transaction-timed-out": "MR-012",
    "kafka-left-group": "MR-034",
    "kafka-changelog-deleted": "MR-021",
    "kafka-wrong-credentials": "MR-043",
    "kafka-broker-disk-full": "MR-062",
}
"""The code of the cause of the one incident in each recording."""
UNEVENTFUL = ("kafka-fenced", "kafka-poison-record", "kafka-broker-killed")
"""Recordings of brokers that log nothing of the fault: it is another one's."""


def analyze(*names: str) -> LogAnalysisOutput:
    return analyze_logs([LogSource(str(RECORDED / f"{name}.log.gz")) for name in names])


def test_every_recording_is_looked_at() -> None:
    recorded = {path.name.removesuffix(".log.gz") for path in RECORDED.glob("*.log.gz")}
    assert recorded == {*CAUSES, *UNEVENTFUL}


@pytest.mark.parametrize(("name", "code"), CAUSES.items())
def test_the_cause_of_a_recorded_fault_is_named(name: str, code: str) -> None:
    analysis = analyze(name)
    [incident] = analysis.incidents
    assert incident.cause == code
    assert incident.explanation
    assert incident.page == f"millrace explain-error {code}"
    shown = [line.message for line in incident.lines]
    assert code in [line.code for line in incident.lines]
    # In JSON a message has escapes.
    text = "\n".join(read_recording(name)).replace("\\", "")
    assert all(message[:60] in text for message in shown)
    by_hour = sum(sum(hour.events.values()) for hour in analysis.hours)
    assert by_hour == (analysis.events if incident.begin else 0)


@pytest.mark.parametrize("name", UNEVENTFUL)
def test_restarts_and_rebalances_alone_are_no_incident(name: str) -> None:
    analysis = analyze(name)
    assert analysis.incidents == []
    assert analysis.events > 0


def test_logs_of_application_and_broker_are_one_incident_with_the_brokers_cause() -> None:
    [incident] = analyze("streams-stopped", "kafka-stopped").incidents
    assert incident.application == "counting"
    assert incident.cause == "MR-012"
    assert len(incident.files) == 2
    times = [line.time or "" for line in incident.lines]
    assert times == sorted(times)
    assert "due to timeout" in incident.lines[0].message


def test_a_pause_is_told_from_a_function_that_takes_long() -> None:
    [stopped] = analyze("ours-stopped").incidents
    [slow] = analyze("ours-slow-step").incidents
    assert stopped.explanation.startswith("The process stood still")
    assert slow.explanation.startswith("A function took longer")
    assert slow.about["partition"] == ["lines[1]"]


def test_faults_that_are_far_apart_are_incidents_of_their_own() -> None:
    names = ("ours-fenced", "ours-broker-killed", "ours-disk-full")
    incidents = analyze(*names).incidents
    assert [each.cause for each in incidents] == ["MR-010", "MR-062", "MR-040"]
