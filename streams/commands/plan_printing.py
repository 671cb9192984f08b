"""Print what a new version of an application changes of its state, for `millrace plan`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streams.commands.plan_group import WAY_BY_CLASSIC
from streams.topology.compare_versions import StateChange, UpgradePlan
from streams.topology.state_effects import StateEffect, StateOutcome

_STYLES = {
    StateOutcome.NEW: "green",
    StateOutcome.KEPT: "dim",
    StateOutcome.RESTORED: "yellow",
    StateOutcome.REDUCED: "red",
    StateOutcome.LOST: "bold red",
}


def print_plan(plan: UpgradePlan, console: Console) -> None:
    """Print a plan: a table in a terminal; elsewhere lines, for files and programs."""
    if console.is_terminal and plan.changes:
        console.print(_build_changes_table(plan.changes))
    for line in () if console.is_terminal else _list_change_lines(plan.changes):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for line in (*_list_summary_lines(plan), *_list_side_by_side_lines(plan)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _build_changes_table(changes: Iterable[StateChange]) -> Table:
    """Return the changes as a table for a terminal."""
    table = Table(show_lines=True)
    for column in ("state", "of", "what changes", "what becomes of it"):
        table.add_column(column, overflow="fold")
    for change in changes:
        table.add_row(
            Text(change.worst_outcome, _STYLES[change.worst_outcome]),
            Text(f"{change.kind}\n{change.name}"),
            Text("\n".join(effect.difference for effect in change.effects)),
            Text("\n").join(_format_effect(effect) for effect in change.effects),
        )
    return table


def _format_effect(effect: StateEffect) -> Text:
    """Return the explanation of an effect, with its remedy in italics."""
    text = Text(effect.reason)
    if effect.remedy:
        text.append("\n" if effect.reason else "").append(effect.remedy, "italic")
    return text


def _list_change_lines(changes: Iterable[StateChange]) -> Iterator[str]:
    """Yield the changes as indented lines."""
    for change in changes:
        yield f"{change.worst_outcome}: {change.kind} {change.name}"
        for effect in change.effects:
            yield f"  {effect.difference}"
            if effect.reason:
                yield f"    {effect.reason}"
            if effect.remedy:
                yield f"    remedy: {effect.remedy}"


def _list_summary_lines(plan: UpgradePlan) -> Iterator[str]:
    """Yield the summary: how many stores and topics have each outcome, and what is unknown."""
    if plan.changes:
        fates = Counter(change.worst_outcome for change in plan.changes)
        yield ", ".join(
            f"{fates[fate]} {fate}" for fate in reversed(StateOutcome) if fate in fates
        ) + (f", {plan.unchanged_count} as before")
    else:
        yield (
            f"nothing changes for state: {plan.unchanged_count} stores and internal topics are "
            "as before"
        )
    if plan.undeclared:
        yield (
            f"the types of values in {_join_names(plan.undeclared)} were not compared: no serde, "
            "or not that of the saved version, declares them (serdes.json(Type) does)"
        )
    if plan.inputs_as_saved and not plan.inputs_without_counts:
        yield (
            f"partitions of {_join_names(plan.inputs_as_saved)} are those of the saved "
            "description: name a broker with --bootstrap-servers to compare with those of now"
        )
    if plan.inputs_without_counts:
        yield (
            "partition counts that follow from the inputs were not compared: say what "
            f"{_join_names(plan.inputs_without_counts)} had and has, as in --partitions "
            f"{plan.inputs_without_counts[0]}=4, or name a "
            "broker with --bootstrap-servers"
        )


def _list_side_by_side_lines(plan: UpgradePlan) -> Iterator[str]:
    """Yield the lines that say whether both versions may run side by side."""
    if plan.sent_differences:
        certainty = "" if plan.is_streams_group_certain else " (unless it is a classic group)"
        yield (
            f"side by side: no{certainty}; a group of the streams protocol keeps its topology, "
            "also while it has no members, and refuses a worker of the new version (see MR-033)"
        )
        yield from (f"  {each}" for each in (*plan.conflicts, *plan.sent_differences))
        yield f"  remedy: {WAY_BY_CLASSIC}"
    elif plan.conflicts:
        yield "side by side: no; a worker of the new version is refused while the old one runs"
        yield from (f"  {conflict}" for conflict in plan.conflicts)
        yield "  remedy: end all workers of the old version before the first of the new one starts"
    else:
        yield "side by side: yes; workers may be restarted one after the other"


def _join_names(topics: Iterable[str]) -> str:
    return ", ".join(topics) or "none"
