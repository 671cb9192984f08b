"""Encode what members and leader tell each other: ConsumerProtocol with JSON as its user data.

    field      of a subscription                     of an assignment
    format     1                                     1
    tasks      those that the member runs now        those that it is to run, in its own numbers
    shutdown   why all members are to end            the same, passed on
    topology   the member's own, declared            fingerprints: for whom it was made, and whose
                                                     the leader's is
    former     those that it ran before it lost its
               membership, if it runs none now
    refused                                          why this member is to end
    notice                                           what the member is to log

Readers skip fields that they don't know, and all but `format` and `tasks` may be missing: so what a
later release adds, an earlier one can read. The release before topologies were declared says and
knows `tasks` and `shutdown` alone. `format` changes only where that can't be kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from coordinator.assignors import consumer_protocol
from coordinator.assignors.subscriptions import ConsumerSubscription
from streams.topology.declared import DeclaredTopology, decode_topology, encode_topology

_FORMAT = 1


class SubscriptionInfo(NamedTuple):
    """Represents what a member tells the leader: the tasks that it runs, and its topology.

    With `shutdown` it asks all members to end. Beside it the leader learns the topics that the
    member reads. `topology` is None from a release that does not declare one. `former` are the
    tasks that a member ran before it lost its membership: they tell which version of the topology
    ran, and are nobody's now. Kafka Streams' counterpart is SubscriptionInfo.
    """

    tasks: tuple[str, ...]
    shutdown: str = ""
    topics: tuple[str, ...] = ()
    topology: DeclaredTopology | None = None
    former: tuple[str, ...] = ()


class AssignmentInfo(NamedTuple):
    """Represents what the leader tells a member: its tasks, and the partitions that they read.

    Or it passes on why all are to end, or says why this one is refused: then there are none.
    `fingerprint` is of the topology that the member had declared, `leader` of the leader's own;
    both are empty where the leader is of a release that does not compare topologies. `notice` is
    what the member is to log. Kafka Streams' counterpart is AssignmentInfo.
    """

    tasks: tuple[str, ...]
    partitions: tuple[tuple[str, int], ...]
    shutdown: str = ""
    refused: str = ""
    notice: str = ""
    fingerprint: str = ""
    leader: str = ""

    def is_for_other_topology(self, topology: DeclaredTopology | None) -> bool:
        """Return whether the leader made this assignment for another topology than `topology`.

        A static member that comes back gets what was assigned before, in the task numbers of that
        time.
        """
        return topology is not None and self.fingerprint not in ("", topology.fingerprint)


def encode_subscription(
    topics: Iterable[str], subscription: SubscriptionInfo, declared: DeclaredTopology | None = None
) -> bytes:
    """Encode the subscription of a member that reads `topics` and declares its topology."""
    user_data = _encode_fields(
        tasks=subscription.tasks,
        shutdown=subscription.shutdown,
        topology=None if declared is None else encode_topology(declared),
        former=subscription.former,
    )
    return consumer_protocol.encode_subscription(ConsumerSubscription(tuple(topics), user_data))


def decode_subscription(data: bytes) -> SubscriptionInfo:
    """Decode a subscription; raise ValueError for bytes that no Millrace member has sent."""
    subscription = consumer_protocol.decode_subscription(data)
    fields = _decode_fields(subscription.user_data)
    declared = fields.get("topology")
    return SubscriptionInfo(
        tuple(fields["tasks"]),
        fields.get("shutdown", ""),
        tuple(subscription.topics),
        None if declared is None else decode_topology(declared),
        tuple(fields.get("former", ())),
    )


def encode_assignment(assignment: AssignmentInfo) -> bytes:
    """Encode the assignment of one member."""
    topology = {"fingerprint": assignment.fingerprint, "leader": assignment.leader}
    user_data = _encode_fields(
        tasks=assignment.tasks,
        shutdown=assignment.shutdown,
        refused=assignment.refused,
        notice=assignment.notice,
        topology=topology if assignment.leader else None,
    )
    return consumer_protocol.encode_assignment(assignment.partitions, user_data)


def decode_assignment(data: bytes) -> AssignmentInfo:
    """Decode a member's assignment; empty bytes are an assignment without tasks.

    Raises: ValueError for bytes that no Millrace leader has sent.
    """
    if not data:
        return AssignmentInfo((), ())
    partitions, user_data = consumer_protocol.decode_assignment(data)
    fields = _decode_fields(user_data)
    topology = fields.get("topology", {})
    return AssignmentInfo(
        tuple(fields["tasks"]),
        tuple(partitions),
        fields.get("shutdown", ""),
        fields.get("refused", ""),
        fields.get("notice", ""),
        topology.get("fingerprint", ""),
        topology.get("leader", ""),
    )


def _encode_fields(**fields: Any) -> bytes:
    """Encode user data as JSON, without empty fields, which earlier releases don't know."""
    given_fields = {name: value for name, value in fields.items() if value or name == "tasks"}
    return orjson.dumps({"format": _FORMAT, **given_fields})


def _decode_fields(user_data: bytes | None) -> Any:
    """Decode user data; raise ValueError for an unknown format."""
    fields: Any = orjson.loads(user_data or b"null")
    if not isinstance(fields, dict) or fields.get("format") != _FORMAT:
        raise ValueError(f"user data of an unknown format: {user_data!r:.200}")
    return fields
