"""Move leaders of partitions between the nodes of a cluster, and partitions to other nodes.

confluent-kafka has no call for AlterPartitionReassignments (KIP-455); any node takes it, and
forwards it to the controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from threading import Lock
from typing import Any

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from kio.schema.errors import ErrorCode

from streams.membership.connection import (
    BrokerConnection,
    build_entity,
    connect_to_any_server,
    load_request_classes,
)
from tests.cluster.nodes import NODES
from tests.processes import HANG_LIMIT_S, wait_until

OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
_ALTER_REASSIGNMENTS_API_KEY = 45
_REQUEST_S = 30.0


class Placement:
    """Looks up and changes where the partitions of a cluster are."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._admin = AdminClient({"bootstrap.servers": servers})

    def move_leaders(self, *topics: str) -> None:
        """Move the leader of each partition of topics to the next node, and wait until it leads."""
        wanted = {
            partition: NODES[each.leader % len(NODES)]
            for topic in topics
            for partition, each in self._describe(topic).items()
        }
        self._lead(wanted)

    def lead_all(self, node: int, *topics: str) -> None:
        """Let a node lead all partitions of topics, and wait until it does."""
        self._lead({partition: node for topic in topics for partition in self._describe(topic)})

    def spread_leaders(self, *topics: str) -> None:
        """Let the nodes take turns in leading the partitions of topics."""
        self._lead(
            {
                (topic, number): NODES[number % len(NODES)]
                for topic in topics
                for _, number in self._describe(topic)
            }
        )

    def _lead(self, wanted: Mapping[tuple[str, int], int]) -> None:
        self.reassign(
            {
                partition: (node, *(other for other in NODES if other != node))
                for partition, node in wanted.items()
            }
        )
        self._elect_leaders(wanted)

    def move_replicas(self, topic: str) -> None:
        """Take each partition of a topic from its leader's node, and then put it back there."""
        partitions = self._describe(topic)
        for is_back in (False, True):
            self.reassign(
                {
                    partition: (*others, each.leader) if is_back else others
                    for partition, each in partitions.items()
                    if (others := tuple(node for node in NODES if node != each.leader))
                }
            )

    def reassign(self, replicas: Mapping[tuple[str, int], Sequence[int]]) -> None:
        """Put partitions on these nodes, and wait until they are there and in sync."""
        self._alter_reassignments(replicas)

        def is_done() -> bool:
            try:
                found = {topic: self._describe(topic) for topic, _ in replicas}
            except KafkaException:  # no node has answered
                return False
            return all(
                tuple(found[topic][topic, number].replicas) == tuple(nodes)
                and set(found[topic][topic, number].isrs) == set(nodes)
                for (topic, number), nodes in replicas.items()
            )

        wait_until(is_done, what=f"{replicas} are not reassigned")

    def _describe(self, topic: str) -> dict[tuple[str, int], Any]:
        listed = self._admin.list_topics(topic, timeout=_REQUEST_S).topics[topic]
        return {(topic, number): each for number, each in listed.partitions.items()}

    def _elect_leaders(self, wanted: Mapping[tuple[str, int], int]) -> None:
        """Let the first replica of each partition lead (`kafka-leader-election`, preferred)."""
        partitions = [TopicPartition(*each) for each in wanted]

        def is_elected() -> bool:
            self._admin.elect_leaders(ElectionType.PREFERRED, partitions).result(HANG_LIMIT_S)
            try:
                return all(
                    self._describe(topic)[topic, number].leader == node
                    for (topic, number), node in wanted.items()
                )
            except KafkaException:  # no node has answered
                return False

        wait_until(is_elected, what=f"{wanted} are not elected")

    def _alter_reassignments(self, replicas: Mapping[tuple[str, int], Sequence[int]]) -> None:
        connection = connect_to_any_server(
            self._servers,
            lambda address: BrokerConnection(address, "placement", _REQUEST_S, Lock()),
        )
        with closing(connection):
            classes = load_request_classes(connection, _ALTER_REASSIGNMENTS_API_KEY, 0)
            topics = tuple(
                build_entity(
                    classes["ReassignableTopic"],
                    name=topic,
                    partitions=tuple(
                        build_entity(
                            classes["ReassignablePartition"],
                            partition_index=number,
                            replicas=tuple(nodes),
                        )
                        for (name, number), nodes in replicas.items()
                        if name == topic
                    ),
                )
                for topic in sorted({name for name, _ in replicas})
            )
            answer = connection.send_request(
                build_entity(classes["AlterPartitionReassignmentsRequest"], topics=topics)
            )
        codes = {part.error_code for each in answer.responses for part in each.partitions}
        assert {answer.error_code, *codes} == {ErrorCode.none}, answer
