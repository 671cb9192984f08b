"""List consumer group records with the bytes that Kafka 4.3's own serializer makes of them.

Each case is a record of ours, the same in the words of Kafka's schemas, and Kafka's bytes in hex.
`tests/upgrade/test_record_bytes.py` gives the schemas' words to Kafka's classes and compares; to
see the bytes of a new case, run it with them left empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from coordinator.groups.consumer.record_types import (
    ClassicMemberMetadata,
    ConsumerGroupForgotten,
    ConsumerGroupSaved,
    ConsumerMemberForgotten,
    ConsumerMemberSaved,
    CurrentAssignmentForgotten,
    CurrentAssignmentSaved,
    MemberState,
    Record,
    RegexForgotten,
    RegexResolved,
    SubscriptionMetadataForgotten,
    SubscriptionMetadataSaved,
    TargetAssignmentForgotten,
    TargetAssignmentSaved,
    TargetEpochForgotten,
    TargetEpochSaved,
)

A, B = UUID(int=(1 << 64) + 2), UUID(int=(3 << 64) + 4)
A_TEXT, B_TEXT = "AAAAAAAAAAEAAAAAAAAAAg", "AAAAAAAAAAMAAAAAAAAABA"  # base64, as Kafka writes ids
GROUP = {"groupId": "counts"}
MEMBER = {"groupId": "counts", "memberId": "m1"}


@dataclass(frozen=True, slots=True)
class Golden:
    """Holds a record and its bytes in Kafka; a `schema_value` of None is a tombstone."""

    record: Record
    type: int
    schema_key: dict[str, Any]
    schema_value: dict[str, Any] | None
    key: str
    value: str | None


GOLDEN = (
    Golden(
        ConsumerGroupSaved("counts", 7, -2),
        3,
        GROUP,
        {"epoch": 7, "metadataHash": -2},
        "00030006636f756e7473",
        "000000000007010008fffffffffffffffe",
    ),
    Golden(
        ConsumerGroupSaved("counts", 7),
        3,
        GROUP,
        {"epoch": 7, "metadataHash": 0},
        "00030006636f756e7473",
        "00000000000700",
    ),
    Golden(ConsumerGroupForgotten("counts"), 3, GROUP, None, "00030006636f756e7473", None),
    Golden(
        SubscriptionMetadataSaved("counts"),
        4,
        GROUP,
        {
            "topics": [
                {
                    "topicId": A_TEXT,
                    "topicName": "words",
                    "numPartitions": 1,
                    "partitionMetadata": [{"partition": 0, "racks": ["r1", "r2"]}],
                }
            ]
        },
        "00040006636f756e7473",
        (
            "0000020000000000000001000000000000000206776f726473000000010200000000030372310372"
            "32000000"
        ),
    ),
    Golden(SubscriptionMetadataForgotten("counts"), 4, GROUP, None, "00040006636f756e7473", None),
    Golden(
        ConsumerMemberSaved(
            group_id="counts",
            member_id="m1",
            instance_id="i1",
            rack_id="r1",
            client_id="c",
            client_host="/127.0.0.1",
            topics=("letters", "wörter"),
            regex="w.*",
            rebalance_timeout_ms=45_000,
            assignor="range",
        ),
        5,
        MEMBER,
        {
            "instanceId": "i1",
            "rackId": "r1",
            "clientId": "c",
            "clientHost": "/127.0.0.1",
            "subscribedTopicNames": ["letters", "wörter"],
            "subscribedTopicRegex": "w.*",
            "rebalanceTimeoutMs": 45_000,
            "serverAssignor": "range",
            "classicMemberMetadata": None,
        },
        "00050006636f756e747300026d31",
        (
            "000003693103723102630b2f3132372e302e302e3103086c6574746572730877c3b6727465720477"
            "2e2a0000afc80672616e676501000100"
        ),
    ),
    Golden(
        ConsumerMemberSaved(
            group_id="counts",
            member_id="m1",
            instance_id=None,
            rack_id=None,
            client_id="",
            client_host="",
            topics=(),
            regex=None,
            rebalance_timeout_ms=-1,
            assignor=None,
            classic=ClassicMemberMetadata(10_000, (("range", b"\0\1"), ("sticky", b""))),
        ),
        5,
        MEMBER,
        {
            "instanceId": None,
            "rackId": None,
            "clientId": "",
            "clientHost": "",
            "subscribedTopicNames": [],
            "subscribedTopicRegex": None,
            "rebalanceTimeoutMs": -1,
            "serverAssignor": None,
            "classicMemberMetadata": {
                "sessionTimeoutMs": 10_000,
                "supportedProtocols": [
                    {"name": "range", "metadata": "AAE="},
                    {"name": "sticky", "metadata": ""},
                ],
            },
        },
        "00050006636f756e747300026d31",
        ("0000000001010100ffffffff0001001a0100002710030672616e67650300010007737469636b79010000"),
    ),
    Golden(
        ConsumerMemberSaved(
            group_id="counts",
            member_id="m1",
            instance_id="",
            rack_id="",
            client_id="",
            client_host="",
            topics=("words",),
            regex="",
            rebalance_timeout_ms=1,
            assignor="",
            classic=ClassicMemberMetadata(0, ()),
        ),
        5,
        MEMBER,
        {
            "instanceId": "",
            "rackId": "",
            "clientId": "",
            "clientHost": "",
            "subscribedTopicNames": ["words"],
            "subscribedTopicRegex": "",
            "rebalanceTimeoutMs": 1,
            "serverAssignor": "",
            "classicMemberMetadata": {"sessionTimeoutMs": 0, "supportedProtocols": []},
        },
        "00050006636f756e747300026d31",
        "0000010101010206776f72647301000000010100",
    ),
    Golden(
        ConsumerMemberForgotten("counts", "m1"),
        5,
        MEMBER,
        None,
        "00050006636f756e747300026d31",
        None,
    ),
    Golden(
        TargetEpochSaved("counts", 7, 1_700_000_000_123),
        6,
        GROUP,
        {"assignmentEpoch": 7, "assignmentTimestamp": 1_700_000_000_123},
        "00060006636f756e7473",
        "0000000000070100080000018bcfe5687b",
    ),
    Golden(
        TargetEpochSaved("counts", 7),
        6,
        GROUP,
        {"assignmentEpoch": 7, "assignmentTimestamp": 0},
        "00060006636f756e7473",
        "00000000000700",
    ),
    Golden(TargetEpochForgotten("counts"), 6, GROUP, None, "00060006636f756e7473", None),
    Golden(
        TargetAssignmentSaved("counts", "m1", {B: frozenset({300, 0, 2}), A: frozenset()}),
        7,
        MEMBER,
        {
            "topicPartitions": [
                {"topicId": B_TEXT, "partitions": [0, 2, 300]},
                {"topicId": A_TEXT, "partitions": []},
            ]
        },
        "00070006636f756e747300026d31",
        (
            "000003000000000000000300000000000000040400000000000000020000012c0000000000000000"
            "010000000000000002010000"
        ),
    ),
    Golden(
        TargetAssignmentForgotten("counts", "m1"),
        7,
        MEMBER,
        None,
        "00070006636f756e747300026d31",
        None,
    ),
    Golden(
        CurrentAssignmentSaved(
            group_id="counts",
            member_id="m1",
            epoch=7,
            previous_epoch=6,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned={A: {2: 5, 0: 7}, B: dict.fromkeys(range(40), 3)},
            revoking={B: {41: 2}},
        ),
        8,
        MEMBER,
        {
            "memberEpoch": 7,
            "previousMemberEpoch": 6,
            "state": 1,
            "assignedPartitions": [
                {"topicId": A_TEXT, "partitions": [0, 2], "assignmentEpochs": [7, 5]},
                {
                    "topicId": B_TEXT,
                    "partitions": list(range(40)),
                    "assignmentEpochs": [3] * 40,
                },
            ],
            "partitionsPendingRevocation": [
                {"topicId": B_TEXT, "partitions": [41], "assignmentEpochs": [2]}
            ],
        },
        "00080006636f756e747300026d31",
        (
            "00000000000700000006010300000000000000010000000000000002030000000000000002010009"
            "03000000070000000500000000000000030000000000000004290000000000000001000000020000"
            "00030000000400000005000000060000000700000008000000090000000a0000000b0000000c0000"
            "000d0000000e0000000f000000100000001100000012000000130000001400000015000000160000"
            "001700000018000000190000001a0000001b0000001c0000001d0000001e0000001f000000200000"
            "00210000002200000023000000240000002500000026000000270100a10129000000030000000300"
            "00000300000003000000030000000300000003000000030000000300000003000000030000000300"
            "00000300000003000000030000000300000003000000030000000300000003000000030000000300"
            "00000300000003000000030000000300000003000000030000000300000003000000030000000300"
            "00000300000003000000030000000300000003000000030000000300000003020000000000000003"
            "00000000000000040200000029010005020000000200"
        ),
    ),
    Golden(
        CurrentAssignmentSaved("counts", "m1", -2, 7, MemberState.STABLE, {}, {}),
        8,
        MEMBER,
        {
            "memberEpoch": -2,
            "previousMemberEpoch": 7,
            "state": 0,
            "assignedPartitions": [],
            "partitionsPendingRevocation": [],
        },
        "00080006636f756e747300026d31",
        "0000fffffffe0000000700010100",
    ),
    Golden(
        CurrentAssignmentForgotten("counts", "m1"),
        8,
        MEMBER,
        None,
        "00080006636f756e747300026d31",
        None,
    ),
    Golden(
        RegexResolved("counts", "w.*", ("words", "wörter"), 42, 1_700_000_000_123),
        16,
        {"groupId": "counts", "regularExpression": "w.*"},
        {"topics": ["words", "wörter"], "version": 42, "timestamp": 1_700_000_000_123},
        "00100006636f756e74730003772e2a",
        "00000306776f7264730877c3b672746572000000000000002a0000018bcfe5687b00",
    ),
    Golden(
        RegexForgotten("counts", "w.*"),
        16,
        {"groupId": "counts", "regularExpression": "w.*"},
        None,
        "00100006636f756e74730003772e2a",
        None,
    ),
)
