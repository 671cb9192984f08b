"""Create the classes to which a stream loop delegates, each with what it needs of the thread's."""

from __future__ import annotations

from collections.abc import Callable

from streams.runtime.offsets.topic_ids import TopicIdCheck
from streams.runtime.tasks.key_placement import KeyPlacementCheck
from streams.runtime.threads.client_renewal import ClientRenewal
from streams.runtime.threads.commit import PartitionOffsets, TaskCommitter
from streams.runtime.threads.rebalance import ThreadRebalance
from streams.runtime.threads.standby_tasks import StandbyTasks
from streams.runtime.threads.task_executor import TaskExecutor
from streams.runtime.threads.thread_dependencies import ThreadDependencies
from streams.runtime.threads.thread_recovery import ThreadRecovery
from streams.runtime.threads.thread_tasks import ThreadTasks
from streams.runtime.threads.vanished_topics import VanishedTopicCheck


def create_thread_tasks(dependencies: ThreadDependencies, *, restored_wait_s: float) -> ThreadTasks:
    """Create the ThreadTasks of the thread, with their executor and standby tasks."""
    executor = TaskExecutor(
        dependencies.consumer,
        dependencies.producers,
        dependencies.host,
        dependencies.counters,
        KeyPlacementCheck(
            dependencies.group,
            # Not before there are samples: a thread without such inputs needs no admin client.
            lambda: dependencies.admin.fetch_partition_counts(),
            dependencies.counters,
        ),
        measures_details=dependencies.task_creator.measures_details,
        lifetimes=dependencies.task_creator.lifetimes,
        restorer_timings=dependencies.restorer.timings,
    )
    standby = StandbyTasks(
        dependencies.name,
        dependencies.host,
        dependencies.restorer,
        dependencies.task_creator,
        dependencies.task_offsets,
    )
    return ThreadTasks(
        dependencies.name,
        dependencies.host,
        dependencies.consumer,
        dependencies.producers,
        dependencies.restorer,
        dependencies.task_creator,
        dependencies.task_offsets,
        executor,
        standby,
        order_settings=dependencies.order_settings,
        commit_interval_ms=dependencies.commit_interval_ms,
        on_state_change=dependencies.on_state_change,
        restored_wait_s=restored_wait_s,
    )


def create_client_renewal(dependencies: ThreadDependencies, tasks: ThreadTasks) -> ClientRenewal:
    """Create the ClientRenewal that replaces the thread's clients when security changes."""
    return ClientRenewal(
        dependencies.name,
        tasks,
        dependencies.restorer,
        dependencies.security,
        dependencies.security_version,
        renew_clients=dependencies.renew_clients,
        on_state_change=dependencies.on_state_change,
    )


def create_rebalance(
    dependencies: ThreadDependencies,
    tasks: ThreadTasks,
    *,
    commit_tasks: Callable[[bool], object],
    assignment_wait_s: float,
) -> ThreadRebalance:
    """Create the ThreadRebalance that keeps the thread's membership of its group."""
    return ThreadRebalance(
        dependencies.name,
        dependencies.host,
        dependencies.member,
        tasks,
        dependencies.counters,
        commit_tasks=commit_tasks,
        mend_topics_and_compare_inputs=dependencies.mend_topics_and_compare_inputs,
        fetch_source_topics_or_last_known=dependencies.fetch_source_topics_or_last_known,
        vanished_topics=VanishedTopicCheck(
            dependencies.patterns, dependencies.consumer, dependencies.host.monotonic_s
        ),
        adopt_assignment=dependencies.adopt_assignment,
        on_state_change=dependencies.on_state_change,
        input_check_interval_ms=dependencies.input_check_interval_ms,
        assignment_wait_s=assignment_wait_s,
        directory_id=dependencies.directory_id,
        process_id=dependencies.process_id,
        client_tags=dependencies.client_tags,
        rack=dependencies.rack,
        endpoint=dependencies.endpoint,
    )


def create_recovery(dependencies: ThreadDependencies, tasks: ThreadTasks) -> ThreadRecovery:
    """Create the ThreadRecovery that recovers the thread from errors."""
    return ThreadRecovery(
        dependencies.name,
        dependencies.host,
        dependencies.stop,
        dependencies.member,
        tasks,
        dependencies.task_creator,
        dependencies.producers,
        dependencies.counters,
        outage=dependencies.outage,
        check_rights=dependencies.check_rights,
        check_internal_topics=dependencies.check_internal_topics,
        on_state_change=dependencies.on_state_change,
        task_timeout_ms=dependencies.task_timeout_ms,
        may_lose_inputs=bool(dependencies.patterns),
    )


def create_committer(
    dependencies: ThreadDependencies,
    *,
    get_group_metadata: Callable[[], bytes],
    on_commit: Callable[[PartitionOffsets], None],
) -> TaskCommitter:
    """Create the TaskCommitter that commits the thread's tasks as a member of the group."""
    return TaskCommitter(
        dependencies.consumer,
        dependencies.admin,
        dependencies.producers,
        ledger=dependencies.ledger,
        get_group_metadata=get_group_metadata,
        hold_membership=dependencies.member.hold_membership,
        commit_as_member=dependencies.member.try_commit_offsets,
        on_commit=on_commit,
        on_expired=dependencies.on_expired,
        on_step=dependencies.on_commit_step,
        now_ms=dependencies.host.now_ms,
    )


def create_topic_id_check(dependencies: ThreadDependencies) -> TopicIdCheck:
    """Create the check that finds input topics which were deleted and created again."""
    resetter = dependencies.offset_resetter
    return TopicIdCheck(
        lambda topics: resetter.fetch_topic_ids(topics),
        dependencies.host.monotonic_s,
        interval_s=dependencies.input_check_interval_ms / 1_000,
        on_change=lambda topics: resetter.note_topics_made_again(topics),
    )
