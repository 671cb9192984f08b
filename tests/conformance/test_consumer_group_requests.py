"""Test which ConsumerGroupHeartbeats are refused, with which code and message, in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance import calls
from tests.conformance.consumers import AWAY, JOIN, LEAVE, Consumer, describe
from tests.conformance.wire import Api, Client

MAX_SIZE = 10


FULL = {
    "member_epoch": JOIN,
    "rebalance_timeout": 1_000,
    "subscribed_topic_names": ["a"],
    "topic_partitions": (),
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            (
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            ),
        ),
        ({"member_epoch": AWAY}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_42(
    consumer: Callable[..., Consumer], fields: dict[str, Any], message: str
) -> None:
    answer = consumer().send(**{**FULL, **fields})
    assert (answer.error_code, answer.error_message) == (Code.INVALID_REQUEST, message)
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)


def test_an_assignor_that_there_is_not_is_refused_with_112(
    consumer: Callable[..., Consumer],
) -> None:
    answer = consumer().send(**FULL, server_assignor="mine")
    assert (answer.error_code, answer.error_message) == (
        Code.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor mine is not supported. Supported assignors: uniform, range.",
    )


def test_in_version_0_the_broker_makes_up_the_id_of_a_member_that_joins_without(
    consumer: Callable[..., Consumer],
) -> None:
    someone = consumer(version=0, member_id="")
    answer = someone.join("no-such-topic")
    assert len(answer.member_id) == 22
    answer = someone.send(member_epoch=2)
    assert (answer.error_code, answer.error_message) == (
        Code.INVALID_REQUEST,
        "MemberId can't be empty.",
    )
    someone.member_id = someone.join("no-such-topic").member_id
    assert someone.beat().member_epoch == 3


@pytest.mark.parametrize(
    ("epoch", "message"), [(1, "Consumer group {} not found."), (LEAVE, "Group {} not found.")]
)
def test_a_group_that_is_not_there_is_only_made_by_who_joins(
    consumer: Callable[..., Consumer], group: str, epoch: int, message: str
) -> None:
    answer = consumer().send(member_epoch=epoch)
    assert (answer.error_code, answer.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        message.format(group),
    )


def test_a_member_that_is_not_in_the_group_is_refused_with_25(
    consumer: Callable[..., Consumer], group: str
) -> None:
    consumer().join("no-such-topic")
    stranger = consumer(member_id="stranger")
    for epoch in (1, LEAVE):
        answer = stranger.send(member_epoch=epoch)
        assert (answer.error_code, answer.error_message) == (
            Code.UNKNOWN_MEMBER_ID,
            f"Member stranger is not a member of group {group}.",
        )


def test_a_newcomer_to_a_full_group_is_refused_with_81(consumer: Callable[..., Consumer]) -> None:
    members = [consumer() for _ in range(MAX_SIZE)]
    for each in members:
        each.join("no-such-topic")
    answer = consumer().send(**FULL)
    assert (answer.error_code, answer.error_message) == (
        Code.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 10 members.",
    )
    members[0].join("no-such-topic")
    assert members[0].beat().error_code == Code.NONE, "who is in it, stays"


def test_a_regular_expression_that_is_none_is_refused_with_128(
    consumer: Callable[..., Consumer],
) -> None:
    answer = consumer().send(**{**FULL, "subscribed_topic_names": None}, subscribed_topic_regex="[")
    assert answer.error_code == Code.INVALID_REGULAR_EXPRESSION
    assert answer.error_message.startswith(
        "SubscribedTopicRegex `[` is not a valid regular expression: missing "
    )


def test_without_its_feature_the_protocol_is_not_served(
    consumer: Callable[..., Consumer], client: Client, group: str
) -> None:
    someone = consumer()
    someone.join("no-such-topic")

    def set_level(level: int, kind: int) -> None:
        update = {"feature": "group.version", "max_version_level": level, "upgrade_type": kind}
        fields = {"timeout": 5_000, "validate_only": False}
        response = client.send(Api.UPDATE_FEATURES, 1, feature_updates=[update], **fields)
        assert response.error_code == Code.NONE, response

    def heartbeat() -> Code:
        return Code(someone.send().error_code)

    set_level(0, kind=2)
    try:
        assert calls.eventually(heartbeat, Code.UNSUPPORTED_VERSION) == Code.UNSUPPORTED_VERSION
        assert describe(client, group).error_code == Code.UNSUPPORTED_VERSION
    finally:
        set_level(1, kind=1)
    assert calls.eventually(heartbeat, Code.NONE) == Code.NONE


# Static members


def test_a_static_member_that_left_for_a_while_comes_back_to_its_partitions(
    consumer: Callable[..., Consumer], group: str
) -> None:
    first = consumer(instance_id="one", member_id="first")
    epoch = first.join("no-such-topic").member_epoch
    second = consumer(instance_id="one", member_id="second")
    answer = second.send(**FULL)
    assert (answer.error_code, answer.error_message) == (
        Code.UNRELEASED_INSTANCE_ID,
        (
            "Static member second with instance id one cannot join the group because the instance "
            "id is owned by first member."
        ),
    )
    answer = first.leave(AWAY)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "first", AWAY)
    assert second.join("no-such-topic").member_epoch == epoch, "no rebalance"
    answer = first.send()
    assert (answer.error_code, answer.error_message) == (
        Code.FENCED_INSTANCE_ID,
        "Static member first with instance id one was fenced by member second.",
    )
    answer = first.send(instance_id=None)
    assert (answer.error_code, answer.error_message) == (
        Code.UNKNOWN_MEMBER_ID,
        f"Member first is not a member of group {group}.",
    )
    answer = consumer(instance_id="two").send(member_epoch=2)
    assert (answer.error_code, answer.error_message) == (
        Code.UNKNOWN_MEMBER_ID,
        "Instance id two is unknown.",
    )
