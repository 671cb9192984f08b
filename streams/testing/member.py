"""Simulate the membership of a driver: a group of one, which has all tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.membership.group_member import AssignGroup, GroupMember, Membership, MembershipSignal
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.testing.cluster import InMemoryCluster
from streams.topics import TopicPattern
from streams.topology.declared import DeclaredTopology

_MEMBER = "driver"


class OnlyMember(GroupMember):
    """Joins a group as its only member, and gets all tasks from the product's assignor."""

    def __init__(
        self,
        cluster: InMemoryCluster,
        instance_id: str,
        plan: AssignGroup,
        topology: DeclaredTopology,
        patterns: Collection[TopicPattern] = (),
    ) -> None:
        self.instance_id = instance_id
        self.is_leader = False  # the leader would look for new partitions of the inputs: none come
        self._cluster = cluster
        self._plan_tasks = plan
        self._topology = topology
        self._patterns = patterns
        self._membership = Membership(-1, "")
        self._subscription: SubscriptionInfo | None = None
        self._known_topics: frozenset[str] = frozenset()
        """The topics of the cluster when tasks were last assigned."""

    @property
    def current_membership(self) -> Membership:
        """Return the membership: generation and member id."""
        return self._membership

    @property
    def confirmed_at_s(self) -> None:
        """Return None: no heartbeat is sent."""

    @property
    def silent_since_s(self) -> None:
        """Return None: the cluster always answers."""

    @property
    def unanswered_since_s(self) -> None:
        """Return None: the cluster always answers."""

    def mark_progress(self) -> None:
        """Do nothing: no watchdog looks at this thread."""

    def read_current_signal_or_raise(self) -> MembershipSignal:
        """Return REBALANCE if a topic that matches a pattern has appeared, else NOTHING.

        There is no other member that could change the group.
        """
        if self._patterns and self._has_new_topics():
            return MembershipSignal.REBALANCE
        return MembershipSignal.NOTHING

    def _has_new_topics(self) -> bool:
        """Return whether a topic that tasks read has appeared since they were assigned."""
        new = self._cluster.partition_counts.keys() - self._known_topics
        return any(pattern.matches_topic(topic) for pattern in self._patterns for topic in new)

    @property
    def is_joining(self) -> bool:
        """Return whether a join was started whose assignment has not been taken."""
        return self._subscription is not None

    @property
    def is_generation_over(self) -> bool:
        """Return False: nobody begins a generation but this member."""
        return False

    def mark_generation_over(self) -> None:
        """Do nothing: no offset is refused."""

    def start_joining(self, subscription: SubscriptionInfo) -> None:
        """Keep the subscription until the assignment is taken."""
        self._subscription = subscription

    def peek_assignment(self, wait_s: float) -> None:
        """Return None: nothing is committed between a join and its answer."""

    def enter_assigned_generation(self, wait_s: float = 0.0) -> AssignmentInfo | None:
        """Begin a new generation and return the assignment, which has all tasks."""
        assert self._subscription is not None, "no join was started"
        subscription, self._subscription = self._subscription, None
        self._membership = Membership(self._membership.generation + 1, _MEMBER)
        self._known_topics = frozenset(self._cluster.partition_counts)
        declaring = subscription._replace(topology=self._topology)
        return self._plan_tasks({_MEMBER: declaring})[_MEMBER]

    def is_membership_confirmed(self) -> bool:
        """Return True: no other member can take the tasks."""
        return True

    def try_commit_offsets(
        self, offsets: Iterable[tuple[tuple[str, int], OffsetAndMetadata]]
    ) -> bool:
        """Commit offsets to the cluster and return True."""
        self._cluster.committed_offsets |= {
            Partition(*partition): held for partition, held in offsets
        }
        return True

    def fetch_committed_offsets(
        self, partitions: Iterable[tuple[str, int]] | None
    ) -> CommittedOffsets:
        """Return the committed offsets of partitions, and those that a transaction may change."""
        found = CommittedOffsets({}, [])
        named = self._cluster.committed_offsets if partitions is None else partitions
        for partition in (Partition(*each) for each in named):
            if self._cluster.has_pending_offset(partition):
                found.pending.append(partition)
            elif partition in self._cluster.committed_offsets:
                found.offsets[partition] = self._cluster.committed_offsets[partition]
        return found

    def leave_group(self, *, is_handed_over: bool = False, has_failed: bool = False) -> None:
        """Do nothing: there is no coordinator to tell."""

    def end_without_leaving_group(self) -> None:
        """Do nothing: there is no coordinator to tell."""
