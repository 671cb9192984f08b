"""Run cases on both sides and keep the verdicts, and what the cases were made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.differential import ours
from tests.differential.compare import Answer, differences, kind, refused
from tests.differential.description import Case, Step, Topology
from tests.differential.known import differs_on_purpose
from tests.differential.peer import Peer
from tests.differential.shrink import shrink

RunOurs = Callable[[Case], Answer]
_TIMED = ("stream_ticks", "hold")


@dataclass(slots=True)
class Verdict:
    """Holds the verdict on one case; without anything in any field the two agree."""

    case: Case
    refused: str | None = None
    """Why Kafka Streams can't run it."""
    differences: list[str] = field(default_factory=list)
    labels: frozenset[str] = frozenset()
    """What it is made of that has put something out."""


@dataclass(slots=True)
class Tally:
    """Sums up the verdicts on many cases."""

    cases: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    differing: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.cases += 1
        if verdict.refused is not None:
            self.refusals[verdict.refused] += 1
        if verdict.differences:
            self.differing.append(verdict)
        self.labels.update(verdict.labels)


def judge(case: Case, peer: Peer, run_ours: RunOurs = ours.run) -> Verdict:
    """Run the case on both sides. Raises PeerFailed."""
    theirs = peer.run(case)
    reason = refused(theirs)
    if reason is None and theirs["sub_topologies"] > 1 and _sees_task_time(case.topology):
        reason = "several sub-topologies have one stream time in Kafka Streams' driver"
    if reason is not None:
        return Verdict(case, refused=reason)
    found = differences(case, theirs, run_ours(case))
    return Verdict(case, differences=found, labels=labels(case.topology, theirs))


def smallest(verdict: Verdict, peer: Peer, run_ours: RunOurs = ours.run) -> Verdict:
    """Find a small case that differs in the same way as the given one."""
    wanted = kind(verdict.differences)

    def differs(case: Case) -> bool:
        if differs_on_purpose(case.topology):
            return False
        return kind(judge(case, peer, run_ours).differences) == wanted

    return judge(shrink(verdict.case, differs), peer, run_ours)


def _sees_task_time(topology: Topology) -> bool:
    return any(each.args.get("processor") in _TIMED for each in topology.steps)


def labels(topology: Topology, answer: Answer) -> frozenset[str]:
    """Return the operators from which something reached a topic or a store.

    Only ways count on which no other stream or table was merged in or joined.
    """
    written = {topic for topic, records in answer["topics"].items() if records}
    kept = {store for store, rows in answer["stores"].items() if rows}
    found = set()
    for step in topology.steps:
        store = step.args.get("store") or {}
        if store.get("name") in kept or _comes_out(topology, step, written):
            found.add(label(topology, step))
    return frozenset(found)


def label(topology: Topology, step: Step) -> str:
    """Return the operator's name, as finely as it is to be covered."""
    args = step.args
    match step.op:
        case "count" | "reduce" | "aggregate":
            group = topology.step(step.parents[0])
            if group.op == "windowed_by":
                inside = topology.step(group.parents[0]).op
                cogrouped = "cogroup, " if inside == "cogroup" else ""
                emit = ", on_close" if args.get("emit") == "on_close" else ""
                return f"aggregate of {cogrouped}{group.args['kind']}{emit}"
            if group.op == "cogroup":
                return "aggregate of cogroup"
            return f"{step.op} of a table" if "subtractor" in args else step.op
        case "join_stream":
            itself = ", with itself" if step.parents[0] == step.parents[1] else ""
            return f"join_stream {args['kind']}{itself}"
        case "join_table":
            return f"join_table {args['kind']}{', with grace' if 'grace_ms' in args else ''}"
        case "join_tables" | "join_foreign" | "join_global":
            return f"{step.op} {args['kind']}"
        case "process" | "process_values":
            return f"{step.op} {args['processor']}"
        case "suppress":
            return f"suppress {args['until']}"
        case "filter" | "filter_not" | "map_values":
            root = _shape(topology, step)
            return f"{step.op} of a {root}"
        case "table":
            versioned = (args.get("store") or {}).get("history_ms")
            return "table, versioned" if versioned else "table"
    return step.op


def _shape(topology: Topology, step: Step) -> str:
    """Say whether a step that streams and tables both have is of a table."""
    tables = {"table", "to_table", "count", "reduce", "aggregate", "suppress"}
    tables |= {"transform_values", "join_tables", "join_foreign"}
    either = {"filter", "filter_not", "map_values"}
    while step.op in either:
        step = topology.step(step.parents[0])
    return "table" if step.op in tables else "stream"


def _comes_out(topology: Topology, step: Step, written: set[str]) -> bool:
    if step.op == "to":
        return step.args["topic"] in written
    if step.op == "to_dynamic":
        base = str(step.args["fn"]).partition(":")[2]
        return bool({f"{base}-even", f"{base}-odd"} & written)
    return any(
        len(each.parents) == 1 and _comes_out(topology, each, written)
        for each in topology.children(step.id)
    )
