"""Create a thread's member of its group, by the group's protocol.

protocol   who assigns                     who creates internal topics
classic    the thread that leads           the leader, or each version of the topology its own
streams    the broker (KIP-1071)           the broker, with the settings that are sent to it
"""

from __future__ import annotations

from functools import partial

from streams.membership.classic_member import ClassicProtocolMember
from streams.membership.departed_producers import abort_departed_transactions
from streams.membership.group_member import GroupMember, MemberTimeouts
from streams.membership.group_offsets import fetch_group_offsets
from streams.membership.streams.former_members import name_member
from streams.membership.streams.heartbeat_request import MemberMetadata
from streams.membership.streams.member import StreamsProtocolMember
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.assigning.group_size_limits import fetch_group_size_limits
from streams.runtime.assigning.topology_to_send import describe_topology_to_send
from streams.runtime.clients import Admin
from streams.runtime.offsets.committed_record_search import CommittedRecordSearch
from streams.runtime.threads.worker_resources import WorkerResources
from streams.settings.config import StreamsConfig


def create_lone_member(worker: WorkerResources, thread_number: int) -> GroupMember:
    """Create a member for a thread that runs no tasks."""
    admin = worker.clients.create_admin()
    return create_member(worker, thread_number, create_assignor(worker, admin), admin)


def create_member(
    worker: WorkerResources, thread_number: int, assignor: StreamsPartitionAssignor, admin: Admin
) -> ClassicProtocolMember | StreamsProtocolMember:
    """Create a thread's member of the group, with an instance id that outlives the process."""
    application_id = worker.topology.application_id
    instance_id = f"{application_id}-{worker.process_id}-{thread_number}"
    if worker.config.group_protocol == "streams":
        return _create_streams_member(worker, instance_id, assignor, admin)
    return _create_classic_member(worker, instance_id, assignor, admin)


def create_assignor(worker: WorkerResources, admin: Admin) -> StreamsPartitionAssignor:
    """Create the assignor by which a thread assigns the group's tasks if it leads the group."""
    group = (worker.open_connection, worker.topology.application_id)
    # A transaction that is open is no reason to wait.
    fetch_committed_offsets = partial(fetch_group_offsets, *group, require_stable=False)
    application = (worker.topology, worker.config, admin, fetch_committed_offsets)
    create_consumer = partial(worker.clients.create_restore_consumer, "search")
    search = CommittedRecordSearch(admin, create_consumer, worker.host)
    return StreamsPartitionAssignor(*application, worker.clients.bootstrap_servers, search)


def _create_timeouts(config: StreamsConfig) -> MemberTimeouts:
    """Return the time-outs of a member by the settings."""
    return MemberTimeouts(
        config.session_timeout_ms,
        config.heartbeat_interval_ms,
        config.max_poll_interval_ms,
        config.task_timeout_ms,
    )


def _create_streams_member(
    worker: WorkerResources, instance_id: str, assignor: StreamsPartitionAssignor, admin: Admin
) -> StreamsProtocolMember:
    """Create a member of a streams group, which tells the broker the topology."""
    topology, config = worker.topology, worker.config
    return StreamsProtocolMember(
        MemberMetadata(
            topology.application_id,
            name_member(instance_id, worker.start_id),
            # By it the broker keeps a task's standbys off the workers that share its directory.
            worker.directory_id or worker.process_id,
            describe_topology_to_send(topology, assignor.declared, config),
            config.max_poll_interval_ms,
            worker.endpoint,
            config.client_tags,
            config.rack,
        ),
        instance_id,
        open_connection=worker.open_connection,
        fetch_partition_counts=admin.fetch_partition_counts,
        timeouts=_create_timeouts(config),
        host=worker.host,
        is_overdue=worker.is_overdue,
    )


def _create_classic_member(
    worker: WorkerResources, instance_id: str, assignor: StreamsPartitionAssignor, admin: Admin
) -> ClassicProtocolMember:
    """Create a static member of a classic group, which assigns the tasks if it leads."""
    topology, config = worker.topology, worker.config
    return ClassicProtocolMember(
        topology.application_id,
        instance_id,
        topology.source_topics,
        assignor.declared,
        open_connection=worker.open_connection,
        assign=assignor.assign_group,
        timeouts=_create_timeouts(config),
        is_stopping=worker.stop.is_set,
        is_overdue=worker.is_overdue,
        host=worker.host,
        fencing=worker.fencing,
        fetch_size_limits=partial(fetch_group_size_limits, admin),
        abort_departed=(
            partial(abort_departed_transactions, worker.open_connection, topology.application_id)
            if config.processing_guarantee == "exactly_once_v2"
            else lambda members, is_current: None
        ),
    )
