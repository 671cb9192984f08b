"""Look up topics and offsets, create topics and delete records."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation, ConfigResource, NewTopic

from streams.common.topic_partitions import Partition
from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError
from streams.runtime.clients.admin_requests import (
    Right,
    count_partitions,
    count_replicas,
    create_no_broker_error,
    create_settings_change,
    require_brokers,
    to_constant_name,
)
from streams.runtime.clients.errors import (
    UNKNOWN_TOPIC_ERRORS,
    NotReady,
    log,
)
from streams.runtime.clients.offset_lookup import OffsetLookup
from streams.runtime.clients.replication import Replication
from streams.runtime.clients.retrying import call_with_retries

_ANSWER_TIMEOUT_MIN_S = 0.1
_LIMIT_TIMEOUT_S = 5.0


class Admin(OffsetLookup):
    """Looks up topics and offsets, creates topics and deletes records.

    A request that brokers can't answer at the moment, as the topic is new or has a new leader, is
    retried for `retry_s`. Raises OutcomeUnknown while no broker answers.
    """

    def fetch_partition_counts_at_start(self, timeout_s: float) -> dict[str, int]:
        """Return every topic's number of partitions.

        A broker that is not ready is waited for. Raises: BrokerUnavailable if none answers.
        """
        try:
            metadata = call_with_retries(
                lambda left_s: require_brokers(
                    self._admin.list_topics(timeout=max(left_s, _ANSWER_TIMEOUT_MIN_S))
                ),
                timeout_s,
                NotReady,
            )
        except (KafkaException, NotReady) as error:
            raise create_no_broker_error(self._bootstrap_servers, timeout_s, error) from error
        return count_partitions(metadata)

    def fetch_partition_counts(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        return count_partitions(self._call_with_retries(self._list_topics))

    def fetch_strictest_broker_limit_or_default(self, setting: str, default: int) -> int:
        """Return a limit that is a setting of the brokers, by the strictest broker.

        It is `default` where it may not be read (DescribeConfigs), or no broker answers or is
        ready. Each broker is asked by a call of its own: librdkafka takes one broker a call. One
        that does not answer within seconds, as it is being restarted, is taken to be as the others.
        """
        reason: object = ""
        limits: list[int] = []
        try:
            brokers = self._call_with_retries(self._list_topics).brokers
        except (OutcomeUnknown, StreamsError) as error:
            brokers, reason = {}, error
        resources = [ConfigResource(ConfigResource.Type.BROKER, str(each)) for each in brokers]
        timeout_s = min(self._timeout_s, _LIMIT_TIMEOUT_S)
        futures = [
            self._admin.describe_configs([each], request_timeout=timeout_s)[each]
            for each in resources
        ]
        for resource, future in zip(resources, futures, strict=True):
            try:
                limits.append(int(future.result(timeout_s)[setting].value))
            except (KafkaException, TimeoutError, KeyError) as error:
                reason = error
                log.info("%s of broker %s is not known: %s", setting, resource.name, error)
        if not limits:
            log.info("%s is taken to be %d: %s", setting, default, reason)
        return min(limits, default=default)

    def check_topic_rights(
        self, operations: Mapping[str, Sequence[str]], timeout_s: float = math.inf
    ) -> None:
        """Raise AuthorizationError for the first operation on a topic that is not allowed.

        `operations`: by topic, each of which implies Describe. A topic that may not be described is
        left out of lists of topics silently, and here it is an error; one that does not exist is
        none. Raises OutcomeUnknown if no broker answers within `timeout_s`.
        """
        if not operations:
            return
        descriptions = self._admin.describe_topics(
            TopicCollection(list(operations)), include_authorized_operations=True
        )
        for topic, future in descriptions.items():
            description = self._wait_for_result(
                future,
                f"describe {topic}",
                Right(operations[topic][0], topic),
                accepted_codes=UNKNOWN_TOPIC_ERRORS,
                timeout_s=min(self._timeout_s, timeout_s),
            )
            if description is None or description.authorized_operations is None:
                continue
            for operation in operations[topic]:
                if AclOperation[to_constant_name(operation)] not in (
                    description.authorized_operations
                ):
                    raise AuthorizationError(operation, "topic", topic)

    def fetch_topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the id of each topic, which tells it from a later one of the same name."""
        if not topics:
            return {}
        collection = TopicCollection(list(topics))
        descriptions = self._read_with_new_clients(
            lambda wait_s: {
                topic: self._wait_for_result(
                    future, f"describe {topic}", Right("Read", topic), timeout_s=wait_s
                )
                for topic, future in self._admin.describe_topics(collection).items()
            }
        )
        return {topic: str(description.topic_id) for topic, description in descriptions.items()}

    def fetch_topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the settings in force of each topic by name, defaults included."""
        if not topics:
            return {}
        resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
        settings = self._read_with_new_clients(
            lambda wait_s: {
                r.name: self._wait_for_result(
                    future,
                    f"settings of {r.name}",
                    Right("DescribeConfigs", r.name),
                    timeout_s=wait_s,
                )
                for r, future in self._admin.describe_configs(resources).items()
            }
        )
        return {
            topic: {name: entry.value for name, entry in entries.items() if entry.value is not None}
            for topic, entries in settings.items()
        }

    def fetch_replication(self, topics: Sequence[str]) -> Replication:
        """Return how many brokers there are, and how often they keep each topic that is listed."""
        return count_replicas(self._call_with_retries(self._list_topics), topics)

    def fetch_replica_racks(self, topics: Sequence[str]) -> dict[Partition, frozenset[str]]:
        """Return the racks of the brokers that keep each partition of topics.

        They are empty where one of these brokers has none (`broker.rack`). Topics that do not exist
        are left out.
        """
        collection = TopicCollection(list(topics))
        found: dict[Partition, frozenset[str]] = {}
        for topic, future in self._admin.describe_topics(collection).items() if topics else ():
            description = self._wait_for_result(
                future,
                f"describe {topic}",
                Right("Describe", topic),
                accepted_codes=UNKNOWN_TOPIC_ERRORS,
            )
            for each in () if description is None else description.partitions:
                racks = frozenset(replica.rack or "" for replica in each.replicas)
                found[Partition(topic, each.id)] = frozenset() if "" in racks else racks
        return found

    def alter_topic_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        """Set settings of a topic, and leave its others as they are (KIP-339)."""

        def request_change() -> None:
            resource = create_settings_change(topic, settings)
            for future in self._admin.incremental_alter_configs([resource]).values():
                right = Right("AlterConfigs", topic)
                self._wait_for_result(future, f"alter settings of {topic}", right)

        self._call_with_retries(request_change)

    def create_topics(
        self,
        partition_counts: Mapping[str, int],
        settings: Mapping[str, dict[str, str]],
        replication_factor: int,
    ) -> None:
        """Create topics, each with its settings if it has any; one that exists stays as it is.

        Where requests are retried, wait until the brokers list the topics with their leaders.
        """
        new_topics = [
            NewTopic(topic, count, replication_factor, config=settings.get(topic, {}))
            for topic, count in partition_counts.items()
        ]
        if not new_topics:
            return

        def request_creation() -> None:
            for topic, future in self._admin.create_topics(new_topics).items():
                self._wait_for_result(
                    future,
                    f"create topic {topic}",
                    Right("Create", topic),
                    accepted_codes={KafkaError.TOPIC_ALREADY_EXISTS},
                )

        self._call_with_retries(request_creation)
        if self._retry_s:
            self._call_with_retries(lambda: self._require_topics_listed(partition_counts))

    def list_groups(self) -> list[str]:
        """Return the names of all groups, those that only keep offsets included.

        Raises: OutcomeUnknown unless every broker has answered.
        """
        listing = self._call_with_retries(self._request_groups)
        return [group.group_id for group in listing.valid]

    def delete_records(self, offsets: Mapping[Partition, int]) -> None:
        """Delete the records below the given offset of each partition."""
        targets = [TopicPartition(*p, o) for p, o in offsets.items()]

        def request_deletion() -> None:
            for each, future in self._admin.delete_records(targets).items():
                self._wait_for_result(
                    future,
                    f"delete records of {each.topic}[{each.partition}]",
                    Right("Delete", each.topic),
                )

        self._call_with_retries(request_deletion)

    def _request_groups(self) -> Any:
        listing = self._wait_for_result(
            self._admin.list_consumer_groups(), "list groups", Right("Describe", "kafka-cluster")
        )
        if listing.errors:
            raise NotReady(f"list groups: {listing.errors[0]}")
        return listing

    def _require_topics_listed(self, topics: Collection[str]) -> None:
        """Raise NotReady unless the brokers list the topics with a leader of each partition."""
        listed = self._list_topics().topics
        unlisted = [topic for topic in topics if topic not in listed]
        self.check_topic_rights(dict.fromkeys(unlisted, ("Describe",)))
        for topic in topics:
            if topic not in listed or listed[topic].error is not None:
                raise NotReady(f"create topic {topic}: the brokers don't list it yet")
            if any(each.leader < 0 for each in listed[topic].partitions.values()):
                raise NotReady(f"create topic {topic}: a partition has no leader yet")
