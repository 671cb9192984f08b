"""Describe the consumers of a group, whichever of Kafka's two consumer protocols it speaks.

Groups of the classic protocol tell what members have said and were assigned while they are stable
(DescribeGroups); groups of the consumer protocol (KIP-848) at any time (ConsumerGroupDescribe).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

from coordinator.assignors import consumer_protocol
from coordinator.assignors.subscriptions import TopicPartition
from streams.command_lines import format_command, hold_invocation
from streams.errors import ConfigError
from streams.membership.connection import (
    BrokerConnection,
    OpenConnection,
    build_entity,
    find_coordinator,
    load_request_classes,
)
from streams.membership.group_description import (
    GroupDescription,
    describe_group,
    raise_for_describe_error,
)

_CONSUMER_GROUP_DESCRIBE_API_KEY = 69
_STABLE = "Stable"
_CONSUMER, _STREAMS = "consumer", "streams"
_MILLRACE_PROTOCOL = "stream"


class ConsumerMember(NamedTuple):
    """Holds a consumer of a group: the topics that it subscribes to, and its partitions today."""

    topics: Sequence[str]
    partitions: Sequence[TopicPartition] = ()
    instance_id: str | None = None


def fetch_consumers(
    open_connection: OpenConnection, group_id: str, protocol: str
) -> dict[str, ConsumerMember]:
    """Fetch the consumers of a group of this protocol, `classic` or `consumer`, by member id.

    Raises: ConfigError for a group whose members are no consumers, that rebalances, or that
    subscribes by a pattern; ConnectionLost where the coordinator does not answer,
    AuthorizationError, StreamsError for another refusal.
    """
    if protocol == _STREAMS:
        with hold_invocation(application_id=group_id):
            command = format_command("group describe")
        raise ConfigError(
            f"group {group_id!r} is a streams group (KIP-1071), to which the broker assigns tasks: "
            f"no assignor of consumers can be chosen for it. {command} shows who has which task"
        )
    if protocol not in ("classic", _CONSUMER):
        raise ConfigError(
            f"group {group_id!r} is of the protocol {protocol!r}: only groups of the protocols "
            "'classic' and 'consumer' have an assignor of consumers"
        )
    with closing(open_connection(None)) as bootstrap:
        address = find_coordinator(bootstrap, group_id)
    with closing(open_connection(address)) as connection:
        if protocol == _CONSUMER:
            return _describe_consumer_group(connection, group_id)
        description = describe_group(connection, group_id)
    if description is None:
        raise ConfigError(f"there is no group {group_id!r} any more")
    return decode_consumers(group_id, description)


def decode_consumers(group_id: str, description: GroupDescription) -> dict[str, ConsumerMember]:
    """Return the consumers of a group of the classic protocol by member id.

    Raises: ConfigError for a group of other members, and for one that rebalances.
    """
    if description.members and description.protocol_type != _CONSUMER:
        raise ConfigError(
            f"group {group_id!r} has members of the type {description.protocol_type!r}, which are "
            "no consumers: their leader assigns no partitions"
        )
    if description.protocol == _MILLRACE_PROTOCOL:
        raise ConfigError(
            f"group {group_id!r} is of an application of Millrace or of Kafka Streams, which "
            "assigns tasks: no assignor of consumers can be chosen for it"
        )
    if description.members and description.state != _STABLE:
        raise ConfigError(
            f"group {group_id!r} is {description.state}: in a rebalance its coordinator does not "
            "tell what members have; try again when it is Stable"
        )
    try:
        return {
            each.member_id: ConsumerMember(
                consumer_protocol.decode_topics(each.subscription),
                consumer_protocol.decode_assignment(each.assignment)[0] if each.assignment else (),
                each.instance_id,
            )
            for each in description.members
        }
    except ValueError as error:
        raise ConfigError(
            f"group {group_id!r} has members that are no consumers: {error}"
        ) from None


def _describe_consumer_group(
    connection: BrokerConnection, group_id: str
) -> dict[str, ConsumerMember]:
    """Return the consumers of a group of the consumer protocol by member id."""
    classes = load_request_classes(connection, _CONSUMER_GROUP_DESCRIBE_API_KEY, 1)
    request = build_entity(
        classes["ConsumerGroupDescribeRequest"],
        group_ids=(group_id,),
        include_authorized_operations=False,
    )
    (group,) = connection.send_request(request).groups
    raise_for_describe_error(group.error_code, group_id)
    return {each.member_id: _to_consumer(group_id, each) for each in group.members}


def _to_consumer(group_id: str, member: Any) -> ConsumerMember:
    """Return a member as ConsumerGroupDescribe shows it. Raises ConfigError for a pattern."""
    if member.subscribed_topic_regex:
        raise ConfigError(
            f"member {member.member_id!r} of group {group_id!r} subscribes to the pattern "
            f"{member.subscribed_topic_regex!r}, which only its coordinator resolves: preview it "
            "with --members and --partitions"
        )
    return ConsumerMember(
        tuple(member.subscribed_topic_names),
        tuple(
            (each.topic_name, number)
            for each in member.assignment.topic_partitions
            for number in each.partitions
        ),
        member.instance_id,
    )
