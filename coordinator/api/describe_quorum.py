"""Handle DescribeQuorum, which returns this broker as the metadata log's only voter (KIP-595).

Behaviour: this broker is the leader, and its log ends where the hidden metadata log does. A request
for anything but that one partition gets UNKNOWN_TOPIC_OR_PARTITION for all its partitions.
Versions: 1 times of fetches (KIP-836), 2 directories and listeners (KIP-853).
Simplifications: there is no raft: the leader's epoch is 1, that of the first leader, as no election
follows; its replica is reported as caught up now, and its listener is the one for clients, as there
is none for controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.coordinators import METADATA_TOPIC
from coordinator.errors import Code

if TYPE_CHECKING:
    from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
    from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse

API_KEY = 55
VERSIONS = range(3)

_LISTENER = "PLAINTEXT"
_LEADER_EPOCH = 1


def handle_request(
    request: DescribeQuorumRequest, context: RequestContext[DescribeQuorumResponse]
) -> DescribeQuorumResponse:
    requested = [
        (topic.topic_name, p.partition_index) for topic in request.topics for p in topic.partitions
    ]
    if requested != [(METADATA_TOPIC, 0)]:
        return _refuse_partitions(request, context)
    services = context.services
    topic = services.topics.find_including_hidden(METADATA_TOPIC)
    assert topic is not None
    end_offset = topic.partitions[0].end_offset
    node_id, now_ms = services.config.node_id, services.clock.now_ms()
    voter = {
        "replica_id": node_id,
        "replica_directory_id": None,
        "log_end_offset": end_offset,
        "last_fetch_timestamp": now_ms,
        "last_caught_up_timestamp": now_ms,
    }
    partition = {
        **_build_partition_fields(0, Code.NONE),
        "leader_id": node_id,
        "leader_epoch": _LEADER_EPOCH,
        "high_watermark": end_offset,
        "current_voters": [voter],
    }
    listener = {
        "name": _LISTENER,
        "host": services.endpoint["host"],
        "port": services.endpoint["port"],
    }
    return context.build_response(
        error_message="",
        topics=[{"topic_name": METADATA_TOPIC, "partitions": [partition]}],
        nodes=[{"node_id": node_id, "listeners": [listener]}],
    )


def build_error_response(
    request: DescribeQuorumRequest, context: RequestContext[DescribeQuorumResponse], code: Code
) -> DescribeQuorumResponse:
    return context.build_response(error_code=code, error_message="", topics=(), nodes=())


def _refuse_partitions(
    request: DescribeQuorumRequest, context: RequestContext[DescribeQuorumResponse]
) -> DescribeQuorumResponse:
    topics = [
        {
            "topic_name": topic.topic_name,
            "partitions": [
                _build_partition_fields(partition.partition_index, Code.UNKNOWN_TOPIC_OR_PARTITION)
                for partition in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return context.build_response(error_message="", topics=topics, nodes=())


def _build_partition_fields(index: int, code: Code) -> dict[str, Any]:
    """Build the fields of a partition without voters, with this code."""
    message = "" if code is Code.NONE else "This server does not host this topic-partition."
    return {
        "partition_index": index,
        "error_code": code,
        "error_message": message,
        "leader_id": 0,
        "leader_epoch": 0,
        "high_watermark": 0,
        "current_voters": (),
        "observers": (),
    }
