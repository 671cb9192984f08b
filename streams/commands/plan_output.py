"""Put a plan into the object that `millrace plan --json` prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from streams.commands.json_outputs import (
    PlannedChangeOutput,
    PlannedEffectOutput,
    PlannedTopicOutput,
    PlanOutput,
)
from streams.commands.plan_group import StreamsGroupReview
from streams.commands.plan_inputs import InputReview
from streams.commands.plan_topics import TopicReview
from streams.topology.compare_versions import StateChange, UpgradePlan


def build_plan_output(
    plan: UpgradePlan | None,
    of_inputs: InputReview,
    reviews: Iterable[TopicReview],
    of_changelogs: Iterable[str],
    group: StreamsGroupReview,
    status: int,
) -> dict[str, Any]:
    """Return a plan as what JSON has; `plan` is None where no other version was given.

    `of_changelogs` are the lines about changelogs that may not rebuild their stores; `status` is
    the exit status of the command.
    """
    known = plan or UpgradePlan(())
    return dataclasses.asdict(
        PlanOutput(
            status=status,
            loses_state=None if plan is None else plan.loses_state,
            changes=[_to_planned_change_output(each) for each in known.changes],
            unchanged=None if plan is None else plan.unchanged_count,
            may_run_side_by_side=None if plan is None else plan.may_run_side_by_side,
            conflicts=[*known.conflicts, *known.sent_differences],
            undeclared=list(known.undeclared),
            inputs_as_saved=list(known.inputs_as_saved),
            inputs_without_counts=list(known.inputs_without_counts),
            refusals=[each for each in (*of_inputs.refusals, group.refusal) if each],
            group_unknown=group.unknown or None,
            patterns=list(of_inputs.patterns),
            changelogs=list(of_changelogs),
            internal_topics=[
                PlannedTopicOutput(
                    each.topic,
                    each.outcome.value,
                    dict(each.settings),
                    list(each.reasons),
                    list(each.remedies),
                )
                for each in reviews
            ],
        )
    )


def _to_planned_change_output(change: StateChange) -> PlannedChangeOutput:
    """Return a change of a store or a topic with its effects, as what JSON has."""
    return PlannedChangeOutput(
        change.kind.value,
        change.name,
        change.worst_outcome.value,
        [
            PlannedEffectOutput(each.difference, each.outcome.value, each.reason, each.remedy)
            for each in change.effects
        ],
    )
