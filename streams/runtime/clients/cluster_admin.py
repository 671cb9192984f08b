"""Administer topics and groups for a person: describe and delete topics, list and reset groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from streams.common.addresses import Address
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.clients.admin_calls import create_admin_client
from streams.runtime.clients.admin_requests import require_brokers
from streams.runtime.clients.errors import (
    RETRIABLE_ERRORS,
    NotReady,
    check_authorized,
    translate_client_error,
)
from streams.runtime.clients.retrying import call_with_retries


class PartitionDescription(NamedTuple):
    """Holds where a partition is: its leader and replicas, by the numbers of brokers."""

    number: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]


class ClusterDescription(NamedTuple):
    """Holds the brokers of a cluster by their numbers, and the partitions of each topic.

    Topics that this user may not describe are left out, and those that can't be used.
    """

    brokers: Mapping[int, Address]
    topics: Mapping[str, Sequence[PartitionDescription]]


class TopicSetting(NamedTuple):
    """Holds a setting of a topic; `is_default` tells that the topic itself does not set it."""

    value: str | None
    is_default: bool


class GroupSetting(NamedTuple):
    """Holds a configuration of a group; `is_default` tells that it is the brokers' value."""

    value: str | None
    is_default: bool


class GroupListing(NamedTuple):
    """Holds a group's name, its state and its protocol: classic, consumer or streams."""

    group: str
    state: str
    protocol: str


class ClusterAdmin:
    """Administers topics and groups. Each request waits for an answer at most `timeout_s`.

    Raises AuthorizationError for a missing right, StreamsError for another refusal, OutcomeUnknown
    if no broker answers.
    """

    def __init__(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._admin = create_admin_client(settings)
        self._timeout_s = timeout_s

    def describe_cluster(self) -> ClusterDescription:
        """Return all brokers and topics, those of Kafka itself included."""

        def list_topics(_: float) -> Any:
            try:
                return require_brokers(self._admin.list_topics(timeout=self._timeout_s))
            except KafkaException as error:
                raise translate_client_error(error, "list topics") from error

        found = call_with_retries(list_topics, self._timeout_s, NotReady)
        return ClusterDescription(
            {each.id: (each.host, each.port) for each in found.brokers.values()},
            {
                topic.topic: [
                    PartitionDescription(
                        each.id,
                        each.leader if each.leader >= 0 else None,
                        list(each.replicas),
                        list(each.isrs),
                    )
                    for each in sorted(topic.partitions.values(), key=lambda each: each.id)
                ]
                for topic in found.topics.values()
                if topic.error is None
            },
        )

    def fetch_broker_settings(self, broker: int) -> dict[str, str]:
        """Return the settings in force of a broker by name; secret ones are left out."""
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
        entries = self._request_with_retries(
            lambda: self._admin.describe_configs([resource])[resource],
            *(f"settings of broker {broker}", "DescribeConfigs", "kafka-cluster"),
        )
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def describe_topic(self, topic: str) -> list[PartitionDescription]:
        """Return the partitions of a topic that exists."""
        description = self._request_with_retries(
            lambda: self._admin.describe_topics(TopicCollection([topic]))[topic],
            *(f"describe {topic}", "Describe", topic),
        )
        return [
            PartitionDescription(
                each.id,
                None if each.leader is None else each.leader.id,
                [node.id for node in each.replicas],
                [node.id for node in each.isr],
            )
            for each in description.partitions
        ]

    def fetch_topic_settings(self, topic: str) -> dict[str, TopicSetting]:
        """Return the settings of a topic by name."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        entries = self._request_with_retries(
            lambda: self._admin.describe_configs([resource])[resource],
            *(f"settings of {topic}", "DescribeConfigs", topic),
        )
        return {
            name: TopicSetting(entry.value, entry.source != _TOPIC_SOURCE)
            for name, entry in entries.items()
        }

    def delete_topics(self, topics: Sequence[str]) -> None:
        """Delete topics with all of their records."""
        for topic in topics:
            self._request_with_retries(
                partial(self._request_deletion, topic),
                *(f"delete topic {topic}", "Delete", topic),
            )

    def _request_deletion(self, topic: str) -> Any:
        return self._admin.delete_topics([topic])[topic]

    def list_groups(self) -> list[GroupListing]:
        """Return classic and consumer groups, those that only keep offsets included, by name."""
        listing = self._request_with_retries(
            self._admin.list_consumer_groups, "list groups", "Describe", "kafka-cluster"
        )
        if listing.errors:
            raise OutcomeUnknown(f"list groups: {listing.errors[0]}")
        groups = [
            GroupListing(
                each.group_id,
                each.state.name.title().replace("_", ""),
                each.type.name.lower(),
            )
            for each in listing.valid
        ]
        return sorted(groups)

    def delete_group(self, group: str) -> None:
        """Delete a group without members, with all of its offsets; one that is not there is none.

        Raises StreamsError (NON_EMPTY_GROUP) for a group with members.
        """
        self._request_with_retries(
            lambda: self._admin.delete_consumer_groups([group])[group],
            f"delete group {group}",
            "Delete",
            group,
            accepted_code=KafkaError.GROUP_ID_NOT_FOUND,
        )

    def fetch_group_settings(self, group: str) -> dict[str, GroupSetting]:
        """Return the configurations of a group by name; the group need not exist."""
        resource = ConfigResource(ConfigResource.Type.GROUP, group)
        entries = self._request_with_retries(
            lambda: self._admin.describe_configs([resource])[resource],
            *(f"configurations of group {group}", "DescribeConfigs", group),
        )
        return {
            name: GroupSetting(entry.value, entry.source != _GROUP_SOURCE)
            for name, entry in entries.items()
        }

    def alter_group_settings(self, group: str, changes: Mapping[str, str | None]) -> None:
        """Set configurations of a group, all or none; None takes the group's own value away.

        Raises StreamsError (INVALID_CONFIG) for a name or a value that brokers don't take.
        """
        entries = [
            ConfigEntry(
                name,
                value or "",
                incremental_operation=AlterConfigOpType.DELETE
                if value is None
                else AlterConfigOpType.SET,
            )
            for name, value in changes.items()
        ]
        resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=entries)
        self._request_with_retries(
            lambda: self._admin.incremental_alter_configs([resource])[resource],
            *(f"configurations of group {group}", "AlterConfigs", group),
        )

    def set_group_offsets(
        self,
        group: str,
        offsets: Mapping[Partition, int],
        metadata: str | Mapping[Partition, str] = "",
    ) -> None:
        """Commit offsets for a group without members, with the same metadata or each its own."""
        if not offsets:
            return
        partitions = [
            TopicPartition(*p, offset, metadata if isinstance(metadata, str) else metadata[p])
            for p, offset in offsets.items()
        ]
        self._request_with_retries(
            lambda: self._admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, partitions)]
            )[group],
            *(f"offsets of group {group}", "Read", group),
            check_result=_check_offsets_accepted,
        )

    def _request_with_retries(
        self,
        send: Callable[[], Any],
        action: str,
        operation: str,
        name: str,
        *,
        accepted_code: int | None = None,
        check_result: Callable[[Any], None] = lambda _: None,
    ) -> Any:
        """Send a request, and again while its broker is another one now; return its result.

        An error with `accepted_code` returns None. `operation` and `name`: the right that the
        request needs, for the error if it is missing. `check_result` raises errors that are within
        a result; after NotReady the request is sent again.
        """

        def send_once(_: float) -> Any:
            try:
                result = send().result(self._timeout_s)
                check_result(result)
                return result
            except KafkaException as error:
                cause = error.args[0]
                if cause.code() == accepted_code:
                    return None
                check_authorized(cause, operation, name)
                message = f"{action}: {cause.str()} ({cause.name()})"
                if cause.code() in _MOVED_ERRORS:
                    raise NotReady(f"{message}; try again") from error
                if cause.code() in RETRIABLE_ERRORS:
                    raise OutcomeUnknown(f"{message}; try again") from error
                raise StreamsError(message) from error
            except TimeoutError as error:
                raise OutcomeUnknown(f"{action}: no answer in {self._timeout_s:g} s") from error

        return call_with_retries(send_once, self._timeout_s, NotReady)


def _check_offsets_accepted(answer: ConsumerGroupTopicPartitions) -> None:
    """Raise an error for a partition whose offset was refused: NotReady if that may pass."""
    for each in answer.topic_partitions:
        if each.error is not None:
            check_authorized(each.error, "Read", each.topic)
            refused = NotReady if each.error.code() in _MOVED_ERRORS else StreamsError
            raise refused(
                f"the offset of {each.topic}[{each.partition}] can't be set: {each.error.str()}"
            )


_MOVED_ERRORS = {
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
"""Errors of a broker that has done nothing, since another one has to, or it is not ready yet."""
_TOPIC_SOURCE = 1
"""ConfigSource.DYNAMIC_TOPIC_CONFIG, which brokers say of what a topic itself sets."""
_GROUP_SOURCE = 8
"""ConfigSource.GROUP_CONFIG, which brokers say of what a group itself has."""
