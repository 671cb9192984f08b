"""List streams group records with the bytes that Kafka 4.4's own serializer makes of them.

Each case is a record of ours, the same in the words of Kafka's schemas, and Kafka's bytes in hex.
`tests/upgrade/test_record_bytes.py` gives the schemas' words to Kafka's classes and compares; to
see the bytes of a new case, run it with them left empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coordinator.groups.streams.record_types import (
    Record,
    StreamsCurrentAssignmentForgotten,
    StreamsCurrentAssignmentSaved,
    StreamsGroupForgotten,
    StreamsGroupSaved,
    StreamsMemberForgotten,
    StreamsMemberSaved,
    StreamsMemberState,
    StreamsTargetAssignmentForgotten,
    StreamsTargetAssignmentSaved,
    StreamsTargetEpochForgotten,
    StreamsTargetEpochSaved,
    StreamsTopologyForgotten,
    StreamsTopologySaved,
)
from coordinator.groups.streams.tasks import AssignedTasks, TaskRoles
from coordinator.groups.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    StreamsSubtopology,
    StreamsTopology,
)

GROUP = {"groupId": "counts"}
MEMBER = {"groupId": "counts", "memberId": "m1"}
TOPOLOGY = StreamsTopology(
    3,
    (
        StreamsSubtopology(
            "0",
            ("lines", "words"),
            ("x.*",),
            repartition_sink_topics=("counts-repartition",),
            copartition_groups=(CopartitionGroup((0, 1), (0,)),),
        ),
        StreamsSubtopology(
            "1",
            changelog_topics=(
                InternalTopic("counts-changelog", configs=(("cleanup.policy", "compact"),)),
            ),
            repartition_source_topics=(InternalTopic("counts-repartition", 4, 3),),
            copartition_groups=(CopartitionGroup(repartition_source_topics=(0,)),),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class StreamsGolden:
    """Holds a record and its bytes in Kafka; a `schema_value` of None is a tombstone."""

    record: Record
    type: int
    schema_key: dict[str, Any]
    schema_value: dict[str, Any] | None
    key: str
    value: str | None


def task_ids(subtopology_id: str, *partitions: int, **epochs: list[int]) -> dict[str, Any]:
    return {"subtopologyId": subtopology_id, "partitions": list(partitions), **epochs}


STREAMS_GOLDEN = (
    StreamsGolden(
        StreamsGroupSaved(
            "counts", 7, -2, 3, (("num.standby.replicas", "1"), ("rack.aware", "z")), 3, 2
        ),
        17,
        GROUP,
        {
            "epoch": 7,
            "metadataHash": -2,
            "validatedTopologyEpoch": 3,
            "lastAssignmentConfigs": [
                {"key": "num.standby.replicas", "value": "1"},
                {"key": "rack.aware", "value": "z"},
            ],
            "storedDescriptionTopologyEpoch": 3,
            "failedDescriptionTopologyEpoch": 2,
        },
        "00110006636f756e7473",
        "000000000007fffffffffffffffe04000400000003012703156e756d2e7374616e6462792e7265706c69"
        "6361730231000b7261636b2e6177617265027a00020400000003030400000002",
    ),
    StreamsGolden(
        StreamsGroupSaved("counts", 7),
        17,
        GROUP,
        {"epoch": 7, "metadataHash": 0, "lastAssignmentConfigs": []},
        "00110006636f756e7473",
        "000000000007000000000000000000",
    ),
    StreamsGolden(StreamsGroupForgotten("counts"), 17, GROUP, None, "00110006636f756e7473", None),
    StreamsGolden(
        StreamsTopologySaved("counts", TOPOLOGY),
        23,
        GROUP,
        {
            "epoch": 3,
            "subtopologies": [
                {
                    "subtopologyId": "0",
                    "sourceTopics": ["lines", "words"],
                    "sourceTopicRegex": ["x.*"],
                    "stateChangelogTopics": [],
                    "repartitionSinkTopics": ["counts-repartition"],
                    "repartitionSourceTopics": [],
                    "copartitionGroups": [
                        {
                            "sourceTopics": [0, 1],
                            "sourceTopicRegex": [0],
                            "repartitionSourceTopics": [],
                        }
                    ],
                },
                {
                    "subtopologyId": "1",
                    "sourceTopics": [],
                    "sourceTopicRegex": [],
                    "stateChangelogTopics": [
                        {
                            "name": "counts-changelog",
                            "partitions": 0,
                            "replicationFactor": 0,
                            "topicConfigs": [{"key": "cleanup.policy", "value": "compact"}],
                        }
                    ],
                    "repartitionSinkTopics": [],
                    "repartitionSourceTopics": [
                        {
                            "name": "counts-repartition",
                            "partitions": 4,
                            "replicationFactor": 3,
                            "topicConfigs": [],
                        }
                    ],
                    "copartitionGroups": [
                        {
                            "sourceTopics": [],
                            "sourceTopicRegex": [],
                            "repartitionSourceTopics": [0],
                        }
                    ],
                },
            ],
        },
        "00170006636f756e7473",
        "00000000000303023003066c696e657306776f7264730204782e2a010213636f756e74732d7265706172"
        "746974696f6e01020300000001020000010000023101010211636f756e74732d6368616e67656c6f6700"
        "0000000000020f636c65616e75702e706f6c69637908636f6d706163740000010213636f756e74732d72"
        "65706172746974696f6e0000000400030100020101020000000000",
    ),
    StreamsGolden(
        StreamsTopologyForgotten("counts"), 23, GROUP, None, "00170006636f756e7473", None
    ),
    StreamsGolden(
        StreamsMemberSaved(
            "counts",
            "m1",
            "i1",
            "r1",
            "c",
            "/127.0.0.1",
            300_000,
            3,
            "p1",
            ("h", 60_000),
            (("a", "b"), ("c", "d")),
        ),
        19,
        MEMBER,
        {
            "instanceId": "i1",
            "rackId": "r1",
            "clientId": "c",
            "clientHost": "/127.0.0.1",
            "rebalanceTimeoutMs": 300_000,
            "topologyEpoch": 3,
            "processId": "p1",
            "userEndpoint": {"host": "h", "port": 60_000},
            "clientTags": [{"key": "a", "value": "b"}, {"key": "c", "value": "d"}],
        },
        "00130006636f756e747300026d31",
        "000003693103723102630b2f3132372e302e302e31000493e000000003037031010268ea600003026102"
        "6200026302640000",
    ),
    StreamsGolden(
        StreamsMemberSaved("counts", "m1", None, None, "", "", -1, 0, "", None, ()),
        19,
        MEMBER,
        {
            "instanceId": None,
            "rackId": None,
            "clientId": "",
            "clientHost": "",
            "rebalanceTimeoutMs": -1,
            "topologyEpoch": 0,
            "processId": "",
            "userEndpoint": None,
            "clientTags": [],
        },
        "00130006636f756e747300026d31",
        "000000000101ffffffff0000000001ff0100",
    ),
    StreamsGolden(
        StreamsMemberForgotten("counts", "m1"),
        19,
        MEMBER,
        None,
        "00130006636f756e747300026d31",
        None,
    ),
    StreamsGolden(
        StreamsTargetEpochSaved("counts", 7, 1_700_000_000_123),
        20,
        GROUP,
        {"assignmentEpoch": 7, "assignmentTimestamp": 1_700_000_000_123},
        "00140006636f756e7473",
        "0000000000070100080000018bcfe5687b",
    ),
    StreamsGolden(
        StreamsTargetEpochSaved("counts", 7),
        20,
        GROUP,
        {"assignmentEpoch": 7},
        "00140006636f756e7473",
        "00000000000700",
    ),
    StreamsGolden(
        StreamsTargetEpochForgotten("counts"), 20, GROUP, None, "00140006636f756e7473", None
    ),
    StreamsGolden(
        StreamsTargetAssignmentSaved(
            "counts",
            "m1",
            TaskRoles(
                frozenset({("0", 0), ("0", 2), ("1", 1)}),
                frozenset({("1", 0)}),
                frozenset({("1", 2)}),
            ),
        ),
        21,
        MEMBER,
        {
            "activeTasks": [task_ids("0", 0, 2), task_ids("1", 1)],
            "standbyTasks": [task_ids("1", 0)],
            "warmupTasks": [task_ids("1", 2)],
        },
        "00150006636f756e747300026d31",
        "000003023003000000000000000200023102000000010002023102000000000002023102000000020000",
    ),
    StreamsGolden(
        StreamsTargetAssignmentForgotten("counts", "m1"),
        21,
        MEMBER,
        None,
        "00150006636f756e747300026d31",
        None,
    ),
    StreamsGolden(
        StreamsCurrentAssignmentSaved(
            "counts",
            "m1",
            7,
            6,
            StreamsMemberState.UNREVOKED_TASKS,
            AssignedTasks({("0", 0): 7, ("0", 2): 5}, frozenset({("1", 0)}), frozenset({("1", 2)})),
            AssignedTasks({("1", 1): 4}, frozenset({("1", 3)}), frozenset()),
        ),
        22,
        MEMBER,
        {
            "memberEpoch": 7,
            "previousMemberEpoch": 6,
            "state": 2,
            "activeTasks": [task_ids("0", 0, 2, assignmentEpochs=[7, 5])],
            "standbyTasks": [task_ids("1", 0)],
            "warmupTasks": [task_ids("1", 2)],
            "activeTasksPendingRevocation": [task_ids("1", 1, assignmentEpochs=[4])],
            "standbyTasksPendingRevocation": [task_ids("1", 3)],
            "warmupTasksPendingRevocation": [],
        },
        "00160006636f756e747300026d31",
        "000000000007000000060202023003000000000000000201000903000000070000000502023102000000"
        "0000020231020000000200020231020000000101000502000000040202310200000003000100",
    ),
    StreamsGolden(
        StreamsCurrentAssignmentForgotten("counts", "m1"),
        22,
        MEMBER,
        None,
        "00160006636f756e747300026d31",
        None,
    ),
)
