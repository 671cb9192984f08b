"""Build the assignment of every member from what all members have told the group's leader.

    subscriptions, in each member's task numbers
      -> the state of the application, in the leader's        (`describe_application`)
      -> the tasks that each member is to have in the end     (`coordinator.assignors.tasks`, or
                                                               `custom_assignment`)
      -> less those that another member owns still         (`coordinator.assignors.task_ownership`)
      -> assignments, in each member's task numbers           (`build_assignments`)

Pure functions. Source: StreamsPartitionAssignor (computeNewAssignment, addClientAssignments).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple
from zlib import crc32

from coordinator.assignors.task_ownership import TaskClaim, find_task_owners, withhold_owned_tasks
from coordinator.assignors.tasks import (
    NO_STRATEGY,
    AssignmentConfigs,
    AssignmentInput,
    ClientState,
    MemberTasks,
    TaskAssignment,
    assign_tasks_and_replicas,
    find_rack_obstacle,
)
from streams.membership.protocol import AssignmentInfo, EndpointTasks, SubscriptionInfo
from streams.runtime.assigning.task_lags import (
    combine_offsets,
    compute_lags,
    estimate_end_offset_sums,
)
from streams.runtime.assigning.topology_versions import TaskNumbers
from streams.settings.config import StreamsConfig

log = logging.getLogger(__name__)


class GroupInfo(NamedTuple):
    """Holds the admitted members and the owners of tasks, in the leader's own task numbers.

    `owners` own a task and process it while they join. `clients` has the members by state
    directory.
    """

    members: Mapping[str, SubscriptionInfo]
    numbers: TaskNumbers
    owners: Mapping[str, str]
    clients: Mapping[str, list[str]]


def describe_group(
    members: Mapping[str, SubscriptionInfo], admitted: Iterable[str], numbers: TaskNumbers
) -> GroupInfo:
    """Find out who owns each task, and which members share a state directory.

    A member that names no directory is taken to share none.
    """
    known = {member: members[member] for member in sorted(admitted)}
    claims = {
        member: TaskClaim(numbers.number_for_leader(member, each.tasks), each.generation)
        for member, each in known.items()
    }
    owners = find_task_owners(claims)
    clients: dict[str, list[str]] = {}
    for member, each in known.items():
        clients.setdefault(each.directory or f"member {member}", []).append(member)
    return GroupInfo(known, numbers, owners, clients)


def describe_application(
    group: GroupInfo, stateful_tasks: Collection[str], end_offset_sums: Mapping[str, int] | None
) -> AssignmentInput:
    """Create the assignor's input from the group's members, tasks and end offsets.

    `end_offset_sums` are where tasks' state is up to date, None if nothing is known of it: then
    only those that run a task have its state for certain. So it is with a task that is left out,
    and where nobody runs that, the furthest copy is taken to be up to date.
    """
    tasks = group.numbers.partitions_by_task
    if end_offset_sums is not None:
        end_offset_sums = {
            **_estimate_unknown_end_offset_sums(group, stateful_tasks, end_offset_sums),
            **end_offset_sums,
        }
    versions = {frozenset(each) for each in group.numbers.able_members_by_task.values()}
    are_all_alike = versions <= {frozenset(group.members)}
    return AssignmentInput(
        stateful_tasks=[task for task in tasks if task in stateful_tasks],
        stateless_tasks=[task for task in tasks if task not in stateful_tasks],
        clients={
            client: ClientState(
                members,
                _find_client_lags(group, members, stateful_tasks, end_offset_sums),
                {key: tag for m in members for key, tag in group.members[m].tags.items()},
                frozenset(group.members[m].rack for m in members),
            )
            for client, members in group.clients.items()
        },
        owners=group.owners,
        standby_holders=_find_standby_holders(group),
        eligible_members=None if are_all_alike else group.numbers.able_members_by_task,
        changelog_sizes=end_offset_sums or {},
    )


def _find_client_lags(
    group: GroupInfo,
    members: Collection[str],
    stateful_tasks: Collection[str],
    end_offset_sums: Mapping[str, int] | None,
) -> dict[str, int]:
    """Return the lags of the tasks in one state directory, as far as they are known."""
    running = {task for task in stateful_tasks if group.owners.get(task) in members}
    if end_offset_sums is None:
        return dict.fromkeys(running, 0)
    offsets = combine_offsets(
        group.numbers.number_offsets_for_leader(member, group.members[member].offsets)
        for member in members
    )
    return {
        **dict.fromkeys(running, 0),
        **compute_lags(offsets, end_offset_sums, running),
    }


def _estimate_unknown_end_offset_sums(
    group: GroupInfo, stateful_tasks: Collection[str], end_offset_sums: Mapping[str, int]
) -> dict[str, int]:
    """Estimate the ends of the tasks that nobody runs, and whose changelogs' ends are unknown."""
    idle = [t for t in stateful_tasks if t not in end_offset_sums and t not in group.owners]
    if not idle:
        return {}
    return estimate_end_offset_sums(
        idle,
        (
            group.numbers.number_offsets_for_leader(member, each.offsets)
            for member, each in group.members.items()
        ),
    )


def _find_standby_holders(group: GroupInfo) -> dict[str, list[str]]:
    """Return the members that run a standby or warm-up task of each task."""
    holders: dict[str, list[str]] = {}
    for member, each in group.members.items():
        for task in group.numbers.number_for_leader(member, each.standby):
            holders.setdefault(task, []).append(member)
    return holders


def hash_partition_counts(counts: Mapping[str, int]) -> int:
    """Return a hash of 32 bits of the topics' numbers of partitions."""
    return crc32(repr(sorted(counts.items())).encode())


def get_assignment_configs(config: StreamsConfig) -> AssignmentConfigs:
    """Return the settings that assignors of tasks have."""
    return AssignmentConfigs(
        config.num_standby_replicas,
        config.max_warmup_replicas,
        config.acceptable_recovery_lag,
        config.rack_aware_assignment_tags,
        config.probing_rebalance_interval_ms,
        config.rack_aware_assignment_strategy,
        config.rack_aware_assignment_traffic_cost,
        config.rack_aware_assignment_non_overlap_cost,
    )


def assign_by_state(
    group: GroupInfo,
    state: AssignmentInput,
    end_offset_sums: Mapping[str, int] | None,
    config: StreamsConfig,
) -> TaskAssignment:
    """Return the tasks of each member by Millrace's own assignor, which follows state (KIP-441).

    One member is to join again later if tasks are on their way, or lags are not known.
    """
    configs = get_assignment_configs(config)
    is_rack_aware = configs.rack_aware_assignment_strategy != NO_STRATEGY
    if is_rack_aware and (obstacle := find_rack_obstacle(state, configs)):
        log.warning("tasks are assigned without regard to racks: %s", obstacle)
    targets = assign_tasks_and_replicas(state, configs)
    are_lags_unknown = end_offset_sums is None or (
        len(group.clients) > 1 and not end_offset_sums.keys() >= set(state.stateful_tasks)
    )
    if not (targets.is_probing_needed or are_lags_unknown):
        return targets
    # One member is enough, and more would rebalance the group as often (KIP-441).
    member, interval_ms = next(iter(targets.members)), config.probing_rebalance_interval_ms
    return targets._replace(rejoin_ms={member: interval_ms})


def build_assignments(
    group: GroupInfo, stateful_tasks: Collection[str], targets: TaskAssignment
) -> dict[str, AssignmentInfo]:
    """Return each member's tasks and partitions, given those that it is to have in the end.

    A task that its owner is to give up is in no other member's `tasks` before it has. A member that
    is to have it then keeps its state up to date until then, if it has another state directory.
    """
    withheld = withhold_owned_tasks(
        {member: tasks.active for member, tasks in targets.members.items()}, group.owners
    )
    assigned = {}
    for member, target in targets.members.items():
        waiting = set(target.active).difference(withheld.tasks[member]) & set(stateful_tasks)
        warmups = {*target.warmup, *_select_tasks_without_shared_state(group, member, waiting)}
        assigned[member] = _build_assignment(
            group,
            member,
            MemberTasks(
                tuple(withheld.tasks[member]),
                target.standby,
                tuple(sorted(warmups.difference(target.standby))),
            ),
            withheld.revoked[member],
        )
    assigned = _add_endpoints(group, assigned)
    if not any(withheld.revoked.values()):  # else the owners join again when they have revoked
        for member, interval_ms in targets.rejoin_ms.items():
            assigned[member] = assigned[member]._replace(rejoin_ms=interval_ms)
    return assigned


def _select_tasks_without_shared_state(
    group: GroupInfo, member: str, tasks: Iterable[str]
) -> list[str]:
    """Return the tasks whose owner has another state directory than `member`."""
    shared = next(members for members in group.clients.values() if member in members)
    return [task for task in tasks if group.owners.get(task) not in shared]


def _build_assignment(
    group: GroupInfo, member: str, tasks: MemberTasks, revoked: Collection[str]
) -> AssignmentInfo:
    """Return a member's assignment in its own task numbers."""
    partitions_by_task = group.numbers.partitions_by_task
    copies = sorted({*tasks.standby, *tasks.warmup})
    return AssignmentInfo(
        tuple(group.numbers.number_for_member(member, tasks.active)),
        tuple(p for task in tasks.active for p in partitions_by_task[task]),
        revoked=tuple(group.numbers.number_for_member(member, revoked)),
        standby=tuple(group.numbers.number_for_member(member, tasks.standby)),
        warmup=tuple(group.numbers.number_for_member(member, tasks.warmup)),
        following=tuple(p for task in copies for p in partitions_by_task[task]),
    )


def _add_endpoints(
    group: GroupInfo, assigned: Mapping[str, AssignmentInfo]
) -> dict[str, AssignmentInfo]:
    """Tell every member which tasks run behind each endpoint of the group.

    A task that its owner is to give up runs there until it joins again, and is told anew then.
    """
    numbers = group.numbers
    by_endpoint: dict[str, tuple[set[str], set[str]]] = {}
    for member, each in assigned.items():
        if endpoint := group.members[member].endpoint:
            active, standby = by_endpoint.setdefault(endpoint, (set(), set()))
            active.update(numbers.number_for_leader(member, (*each.tasks, *each.revoked)))
            standby.update(numbers.number_for_leader(member, (*each.standby, *each.warmup)))
    if not by_endpoint:
        return dict(assigned)
    return {
        member: each._replace(
            endpoints={
                endpoint: EndpointTasks(
                    tuple(numbers.number_known_for_member(member, active)),
                    tuple(numbers.number_known_for_member(member, standby - active)),
                )
                for endpoint, (active, standby) in sorted(by_endpoint.items())
            }
        )
        for member, each in assigned.items()
    }
