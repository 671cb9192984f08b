"""Find topologies that run by an application's id and are not those of the App that is asked for.

Two programs that were given one application id share a group, and what the names of internal topics
begin with. What is missing by the topology of one may be complete by that of the other: so points
that rest on the App's topology and may advise to start over are not looked at then, as
`millrace group reset` would delete the topics of a program that runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from streams.command_lines import format_command
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.findings import (
    VERSION,
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.doctor.topics import name_partitions
from streams.errors import AuthorizationError, UserError
from streams.topology.compatibility import find_conflicts
from streams.topology.declared import DeclaredTopology, declare_topology
from streams.topology.description import describe_topology

VERSIONS = "topology"
_NAMES = ("the running one", "this App")
_SHOWN_CHARS = 8


@dataclass(frozen=True, slots=True)
class TopologyComparison:
    """Compares the topology of an App with those that members of its group have declared.

    `others` are fingerprints of other topologies than the App's, without an App those of all
    members where there are several; `conflicts` say of the first of them why it can't run beside
    the App's. `runs_own` is True if a member runs the App's.
    """

    others: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    runs_own: bool = False


def compare_topologies(facts: ApplicationFacts) -> TopologyComparison:
    """Compare the App, if there is one, with what members have declared.

    Members that can't be read are another point; of them no topology is known.
    """
    own = None
    if facts.topology is not None:
        own = declare_topology(describe_topology(facts.topology))
    try:
        subscriptions = facts.members().subscriptions.values()
    except AuthorizationError:
        raise
    except UserError:
        return TopologyComparison()
    declared = (each.topology for each in subscriptions if each.topology is not None)
    return compare_with_running_topologies(own, declared)


def compare_with_running_topologies(
    own: DeclaredTopology | None, declared: Iterable[DeclaredTopology]
) -> TopologyComparison:
    """Compare the topology of an App with those of members.

    A group of the streams protocol tells what its members read, and no fingerprint.
    """
    running = {each.fingerprint: each for each in declared}
    if own is None:
        return TopologyComparison(tuple(sorted(running)) if len(running) > 1 else ())
    runs_own = own.fingerprint in running or any(
        _reads_same_sources(own, each) for each in running.values()
    )
    others = {
        name: each
        for name, each in sorted(running.items())
        if name != own.fingerprint and not _reads_same_sources(own, each)
    }
    return TopologyComparison(
        tuple(others), tuple(_find_first_conflicts(own, others)), runs_own=runs_own
    )


def _reads_same_sources(own: DeclaredTopology, running: DeclaredTopology) -> bool:
    """Return whether a topology without a fingerprint reads what the App reads."""
    return not running.fingerprint and _list_sources(running) == _list_sources(own)


def _list_sources(topology: DeclaredTopology) -> set[frozenset[str]]:
    return {each.sources for each in topology.subtopologies.values()}


def _find_first_conflicts(
    own: DeclaredTopology, others: Mapping[str, DeclaredTopology]
) -> list[str]:
    """Return why the first of the topologies that can't run beside the App's can't; [] for none."""
    for name, each in others.items():
        if not name:
            read = [name_partitions(sorted(side.sources)) for side in (each, own)]
            return [f"{_NAMES[0]} reads {read[0]}, and {_NAMES[1]} {read[1]}"]
        if conflicts := find_conflicts(each, own, _NAMES):
            return conflicts
    return []


def describe_obstacle(comparison: TopologyComparison, *, has_app: bool) -> str:
    """Return why points that rest on the topology are not looked at; empty if they are."""
    point = VERSION if has_app else VERSIONS
    return f"another topology runs by this id: see the point {point!r}" if comparison.others else ""


def check_topology_version(comparison: TopologyComparison) -> Iterator[DoctorFinding]:
    """Compare the topology of the App with those that the workers run."""
    names = ", ".join(each[:_SHOWN_CHARS] for each in comparison.others if each)
    shown = f" ({names})" if names else ""
    if comparison.conflicts:
        yield create_error_finding(
            VERSION,
            f"workers run another topology{shown} by this application id, beside which this App "
            f"can't run: {'; '.join(comparison.conflicts)}",
            "workers of one of the two are refused at their start, and make the group of the other "
            "rebalance each time; topics and stores of this id are of the other",
            "if it is another application, choose another application id for one of the two; if "
            "it is a new version, end all workers of the old one before, after a look at what it "
            f"makes of the state: {format_command('plan', '--against', 'FILE')}. Who they are: "
            + format_command("group describe"),
        )
    elif comparison.others and not comparison.runs_own:
        yield create_warning_finding(
            VERSION,
            f"the workers run another topology{shown} than this App",
            "what is said here of its topics and stores is of another version than runs",
            "look at the version that runs; before an upgrade "
            + format_command("plan", "--against", "FILE"),
        )
    elif comparison.others:
        yield create_warning_finding(
            VERSION,
            f"some workers run the topology of this App, and others another one{shown} that may "
            "run beside it",
            "that is so in a rolling upgrade; until it is over, points that rest on the topology "
            "are not looked at",
            "end the upgrade, and look again. Who runs which: " + format_command("group describe"),
        )
    elif comparison.runs_own:
        yield create_fine_finding(VERSION, "the workers run the topology of this App")
