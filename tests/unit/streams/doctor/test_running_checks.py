"""Test the checks of certificates, rights, readers, coordinators and local workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from state.directory import LOCK_FILE
from state.locks import LockHolder, ProcessFileLock
from streams import App, serdes
from streams.common.topic_partitions import Partition
from streams.connection.certificate_validity import CertificateValidity
from streams.doctor import coordinators, local_workers, readers, security
from streams.doctor.applications import exclude_cut_groups
from streams.doctor.coordinators import CoordinatorTimes
from streams.doctor.findings import DoctorFinding, Verdict
from streams.doctor.local_workers import LocalWorker, find_workers_by_directory_locks
from streams.doctor.security import Certificate
from streams.doctor.security_facts import find_missing_rights, list_bootstrap_addresses
from streams.errors import AuthorizationError
from streams.membership.group_description import GroupDescription, MemberDescription
from streams.monitoring.scraped_figures import parse_scrape
from streams.runtime.access.acls import derive_acls
from tests.unit.streams.doctor.test_checks import member, report

FINE, WARNING, ERROR = Verdict.FINE, Verdict.WARNING, Verdict.ERROR
UNKNOWN = Verdict.NOT_LOOKED_AT
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OUT = Partition("out", 0)


def verdicts(found: Iterable[DoctorFinding]) -> list[Verdict]:
    return [each.verdict for each in found]


@pytest.mark.parametrize(
    ("begins_days", "ends_days", "expected"),
    [(-10, 100, FINE), (-10, 3, WARNING), (-10, -1, ERROR), (1, 100, ERROR)],
)
def test_certificates(begins_days: int, ends_days: int, expected: Verdict) -> None:
    validity = CertificateValidity(
        NOW + timedelta(days=begins_days), NOW + timedelta(days=ends_days)
    )
    (found,) = security.check_certificates([Certificate("the client's", validity)], NOW)
    assert (found.verdict, "the client's" in found.what) == (expected, True)


def test_the_validity_that_python_shows_of_a_peer() -> None:
    shown = {"notBefore": "Nov 28 00:00:00 2025 GMT", "notAfter": "Jan  1 00:00:00 2026 GMT"}
    assert security.parse_peer_validity(shown).end == NOW


@pytest.mark.parametrize(("ends_at_s", "expected"), [(200.0, FINE), (99.0, ERROR)])
def test_tokens(ends_at_s: float, expected: Verdict) -> None:
    assert verdicts(security.check_token(ends_at_s, 100.0)) == [expected]


class AdminWithoutRight:
    """Answers that one right on one topic is missing."""

    def check_topic_rights(self, operations: Mapping[str, Sequence[str]]) -> None:
        for topic, each in operations.items():
            if topic == "lines" and "Read" in each:
                raise AuthorizationError("Read", "topic", topic)


def test_rights_that_are_missing_on_topics() -> None:
    app = App("a")
    app.stream("lines", key=serdes.string, value=serdes.string).to("out")
    admin: Any = AdminWithoutRight()
    needed = derive_acls(app.topology(), app.config)
    missing, count = find_missing_rights(needed, {"lines": 1, "out": 1}, admin)
    assert (missing, count) == ({"topic lines": "Read"}, 2)
    assert verdicts(security.check_rights(missing, count)) == [ERROR]
    assert verdicts(security.check_rights({}, count)) == [FINE]


def test_addresses_whose_certificates_are_looked_at() -> None:
    assert list_bootstrap_addresses("embedded") == []
    assert list_bootstrap_addresses("a:1,b:2") == [("a", 1), ("b", 2)]


def look_at_readers(
    offsets: Mapping[str, Mapping[Partition, int]], stable: int
) -> list[DoctorFinding]:
    found = readers.find_uncommitted_reads(
        list(offsets),
        lambda group: offsets[group],
        lambda partitions: dict.fromkeys(partitions, stable),
        [OUT],
        pause_s=0.0,
    )
    return list(readers.check_isolation(*found))


def test_a_reader_beyond_the_last_stable_offset_reads_uncommitted_records() -> None:
    (found,) = look_at_readers({"sink": {OUT: 11}, "other": {Partition("x", 0): 99}}, stable=10)
    assert (found.verdict, "'sink'" in found.what) == (ERROR, True)
    assert "isolation.level=read_committed" in found.remedy


def test_of_a_reader_that_was_not_seen_there_nothing_is_known() -> None:
    assert verdicts(look_at_readers({"sink": {OUT: 10}}, stable=10)) == [UNKNOWN]
    assert verdicts(look_at_readers({"other": {Partition("x", 0): 99}}, stable=10)) == [FINE]


@pytest.mark.parametrize(("answer_s", "expected"), [(0.01, FINE), (1.2, WARNING)])
def test_answers_of_coordinators(answer_s: float, expected: Verdict) -> None:
    assert verdicts(coordinators.check_answer_times(CoordinatorTimes({"group": answer_s}))) == [
        expected
    ]


@pytest.mark.parametrize(
    ("queued", "append_s", "expected"), [(3, 0.02, FINE), (5_000, 0.02, WARNING), (0, 2.0, WARNING)]
)
def test_figures_of_coordinators(queued: int, append_s: float, expected: Verdict) -> None:
    scrape = parse_scrape(
        f'millrace_shard_events_queued{{shard="g-0"}} {queued}\n'
        f'millrace_shard_append_seconds_max{{shard="g-0"}} {append_s}\n'
    )
    assert verdicts(coordinators.check_coordinator_figures(scrape)) == [expected]


def test_a_worker_that_the_group_does_not_have_is_a_zombie() -> None:
    worker = LocalWorker("process-0", "p", "process 7 (python app.py)", LockHolder(7, True))
    assert verdicts(local_workers.check_zombies([worker], report(member()))) == [FINE]
    (found,) = local_workers.check_zombies([worker], report(member(process="q")))
    assert (found.verdict, "process 7" in found.what) == (ERROR, True)
    rebalancing = report(member(process=""), state="PreparingRebalance")
    assert verdicts(local_workers.check_zombies([worker], rebalancing)) == []
    assert verdicts(local_workers.check_zombies([], report())) == []


def test_workers_are_found_by_the_slots_that_they_hold(tmp_path: Path) -> None:
    for number in (0, 1):
        (tmp_path / f"process-{number}").mkdir()
        (tmp_path / f"process-{number}" / "id").write_text(f"id-{number}\n")
    lock = ProcessFileLock(tmp_path / "process-1" / LOCK_FILE)
    try:
        (found,) = find_workers_by_directory_locks(tmp_path)
    finally:
        lock.release()
    assert (found.slot, found.process) == ("process-1", "id-1")
    assert found.lock_holder == (os.getpid(), True)


def describe_member(member_id: str, instance: str | None = "i") -> GroupDescription:
    joined = MemberDescription(member_id, instance, "host", b"", b"")
    return GroupDescription("Stable", "consumer", "stream", (joined,))


def test_a_static_member_that_changes_between_two_looks() -> None:
    first, second = describe_member("a"), describe_member("b")
    assert verdicts(local_workers.check_fencing(first, first)) == [FINE]
    assert verdicts(local_workers.check_fencing(first, second)) == [WARNING]
    assert verdicts(local_workers.check_fencing(None, None)) == []
    assert verdicts(local_workers.check_fencing(first, describe_member("b", None))) == []


def test_groups_that_keep_cuts_are_no_applications() -> None:
    assert exclude_cut_groups(["a", "a-cut-1", "b-cut-1", "a-cutter"]) == [
        "a",
        "b-cut-1",
        "a-cutter",
    ]


def test_the_log_of_requests_is_what_decides_an_isolation_that_is_not_known() -> None:
    place = Partition("out", 0)
    (asked,) = readers.check_isolation({}, ["dashboard"], "", ["dash-1"], [4, 5])
    assert asked.verdict is Verdict.NOT_LOOKED_AT
    assert "--entity-name 4 --add-config kafka.request.logger=DEBUG" in asked.remedy
    assert '"clientId":"dash-1", "isolationLevel":0 means uncommitted' in asked.remedy
    assert "kafka-request.log in the log directory of each broker" in asked.remedy
    switched_off = asked.remedy.partition("Switch the logger off again")[2]
    assert "--delete-config kafka.request.logger" in switched_off
    (embedded,) = readers.check_isolation({}, ["dashboard"], "", ["dash-1"])
    assert embedded.remedy == ""
    (proven,) = readers.check_isolation({"dashboard": place}, ["dashboard"], "", [], [4])
    assert "request.logger" not in proven.remedy
