"""Test what is said of another topology that runs by the id of the application."""

from __future__ import annotations

from streams import App, serdes
from streams.doctor.findings import DoctorFinding, Verdict
from streams.doctor.other_topology import (
    TopologyComparison,
    check_topology_version,
    compare_with_running_topologies,
    describe_obstacle,
)
from streams.topology.declared import DeclaredSubtopology, DeclaredTopology, declare_topology
from streams.topology.description import describe_topology


def declare_count(
    topic: str, *, is_regrouped: bool = False, store: str = "sent"
) -> DeclaredTopology:
    """Declare a program that counts what a topic has in a store."""
    app = App("notifications")
    messages = app.stream(topic, key=serdes.string, value=serdes.string)
    if is_regrouped:
        grouped = messages.group_by(lambda _, text: text, key=serdes.string)
    else:
        grouped = messages.group_by_key()
    grouped.count(store=store)
    return declare_topology(describe_topology(app.topology()))


MAILS = declare_count("mails")
TEXTS = declare_count("text-messages", is_regrouped=True)
CALLS = declare_count("calls", store="made")


def list_findings(own: DeclaredTopology, *running: DeclaredTopology) -> list[DoctorFinding]:
    return list(check_topology_version(compare_with_running_topologies(own, running)))


def test_without_workers_nothing_is_said() -> None:
    assert list_findings(TEXTS) == []


def test_workers_of_the_app_are_fine() -> None:
    (found,) = list_findings(TEXTS, TEXTS)
    assert found.verdict == Verdict.FINE
    assert describe_obstacle(compare_with_running_topologies(TEXTS, [TEXTS]), has_app=True) == ""


def test_another_program_with_a_store_of_the_same_name_is_an_error() -> None:
    for running in ([MAILS], [MAILS, TEXTS]):
        (found,) = list_findings(TEXTS, *running)
        assert found.verdict == Verdict.ERROR
        assert MAILS.fingerprint[:8] in found.what
        assert "'sent'" in found.what
        assert "another application id" in found.remedy
        assert "reset" not in found.remedy


def test_a_version_that_may_run_beside_the_app_is_a_warning() -> None:
    (found,) = list_findings(TEXTS, CALLS)
    assert found.verdict == Verdict.WARNING
    assert "the workers run another topology" in found.what


def test_a_rolling_upgrade_names_the_other_version() -> None:
    (found,) = list_findings(TEXTS, CALLS, TEXTS)
    assert found.verdict == Verdict.WARNING
    assert CALLS.fingerprint[:8] in found.what
    assert TEXTS.fingerprint[:8] not in found.what
    assert "rolling upgrade" in found.consequence
    assert "plan" not in found.remedy


def test_no_point_refers_to_a_point_that_is_fine() -> None:
    for running in ([CALLS], [CALLS, TEXTS], [MAILS], [MAILS, TEXTS]):
        compared = compare_with_running_topologies(TEXTS, running)
        assert describe_obstacle(compared, has_app=True)
        (found,) = check_topology_version(compared)
        assert found.verdict in (Verdict.WARNING, Verdict.ERROR)


def test_points_that_rest_on_the_topology_wait_while_another_runs() -> None:
    for running in ([CALLS], [MAILS], [MAILS, TEXTS]):
        found = compare_with_running_topologies(TEXTS, running)
        assert "see the point 'version'" in describe_obstacle(found, has_app=True)


def test_without_the_app_one_topology_is_the_applications_and_several_are_not() -> None:
    assert describe_obstacle(compare_with_running_topologies(None, [MAILS]), has_app=False) == ""
    found = compare_with_running_topologies(None, [MAILS, TEXTS])
    assert "see the point 'topology'" in describe_obstacle(found, has_app=False)


def test_a_streams_group_is_compared_by_what_it_reads() -> None:
    def declare_sources(topology: DeclaredTopology) -> DeclaredTopology:
        subs = topology.subtopologies.items()
        return DeclaredTopology("", {n: DeclaredSubtopology(each.sources) for n, each in subs}, {})

    (found,) = list_findings(TEXTS, declare_sources(TEXTS))
    assert found.verdict == Verdict.FINE
    (found,) = list_findings(TEXTS, declare_sources(MAILS))
    assert found.verdict == Verdict.ERROR
    assert "the running one reads mails" in found.what


def test_nothing_is_known_of_members_that_tell_no_topology() -> None:
    assert TopologyComparison() == compare_with_running_topologies(TEXTS, [])
