"""Plant bugs in the members of streams groups and in their broker, which checkers must see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from coordinator.groups.streams import heartbeat, reconcile
from streams.membership.streams import heartbeat_loop, member
from streams.membership.streams.member import StreamsProtocolMember
from tests.simulation.bugs import replaced
from tests.simulation.world import World

PlantedBug = Callable[[World], AbstractContextManager[None]]


def tasks_given_out_before_they_are_released(world: World) -> AbstractContextManager[None]:
    """Make the broker give out tasks whose owner has not said yet that it gave them up."""
    return replaced(reconcile, "may_own_any", lambda original: lambda owned, tasks: False)


def tasks_acknowledged_before_they_are_closed(world: World) -> AbstractContextManager[None]:
    """Make a member report the tasks that it was told as soon as it is told them."""

    def make(original: Any) -> Any:
        def apply(state: Any, sent: Any, answer: Any) -> Any:
            after = original(state, sent, answer)
            return after if answer.told is None else replace(after, owned=after.told)

        return apply

    return replaced(heartbeat_loop, "apply_answer", make)


def revocations_not_acknowledged(world: World) -> AbstractContextManager[None]:
    """Make a member that has closed tasks go on reporting them."""
    return replaced(
        StreamsProtocolMember,
        "acknowledge_assignment",
        lambda original: lambda self, assigned: False,
    )


def losses_not_noticed(world: World) -> AbstractContextManager[None]:
    """Make a member that the group has forgotten take itself for one."""
    return replaced(heartbeat_loop, "apply_loss", lambda original: lambda state, sent: state)


def offers_not_repeated(world: World) -> AbstractContextManager[None]:
    """Make a member that failed while it took its tasks over wait for others for ever."""
    return replaced(member, "repeat_offer", lambda original: lambda state: state)


def lost_answers_taken_for_silent_ones(world: World) -> AbstractContextManager[None]:
    """Make a member that missed an answer wait until the group tells its tasks once more."""
    return replaced(
        heartbeat_loop,
        "apply_lost_answer",
        lambda original: lambda state: replace(original(state), is_told_certain=True),
    )


def tasks_rotated_at_each_epoch(world: World) -> AbstractContextManager[None]:
    """Make the broker give each member the tasks of another one, with each new target."""

    def make(original: Any) -> Any:
        def compute(group: Any, *arguments: Any) -> Any:
            targets = original(group, *arguments)
            names = sorted(targets)
            by = group.epoch % len(names)
            others = names[by:] + names[:by]
            return {name: targets[other] for name, other in zip(names, others, strict=True)}

        return compute

    return replaced(heartbeat, "compute_task_targets", make)


def members_of_a_directory_told_as_processes(world: World) -> AbstractContextManager[None]:
    """Make members that share a state directory give the broker process ids of their own."""

    def make(original: Any) -> Any:
        def send(connection: Any, metadata: Any, *given: Any, **named: Any) -> Any:
            alone = replace(metadata, process_id=metadata.member_id)
            return original(connection, alone, *given, **named)

        return send

    return replaced(heartbeat_loop, "send_heartbeat", make)


class PlantedStreamsBug(NamedTuple):
    """Holds a bug, the name of the checker that must see it, and a setting in which it shows."""

    bug: PlantedBug
    checker: str
    setting: Mapping[str, Any] = MappingProxyType({})


STREAMS_BUGS = (
    PlantedStreamsBug(tasks_given_out_before_they_are_released, "streams owners"),
    PlantedStreamsBug(tasks_acknowledged_before_they_are_closed, "streams owners"),
    PlantedStreamsBug(revocations_not_acknowledged, "progress"),
    PlantedStreamsBug(losses_not_noticed, "progress"),
    PlantedStreamsBug(offers_not_repeated, "progress"),
    PlantedStreamsBug(lost_answers_taken_for_silent_ones, "progress"),
    PlantedStreamsBug(tasks_rotated_at_each_epoch, "movement"),
    PlantedStreamsBug(
        members_of_a_directory_told_as_processes,
        "progress",
        MappingProxyType({"members_a_directory": 2, "standbys": 1}),
    ),
)
