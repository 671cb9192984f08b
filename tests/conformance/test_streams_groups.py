"""Test streams groups (KIP-1071): what is refused, other kinds of groups, offsets, and the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import create_topic, eventually
from tests.conformance.commits import commit
from tests.conformance.consumers import Consumer
from tests.conformance.members import Member
from tests.conformance.streams_members import (
    StreamsMember,
    describe,
    encode_tasks,
    internal,
    tasks_of,
    topology,
)
from tests.conformance.wire import Api, Client

PAIR = {"source_topics": ("a", "b"), "copartition_groups": [{"source_topics": (0, 1)}]}

MISSING_SOURCE_TOPICS = 1
"""The status of topics that a coordinator lacks: Kafka's learns of them a moment later."""


@pytest.fixture
def source(client: Client, unique: Callable[[str], str]) -> str:
    """Create a topic of two partitions, and return its name."""
    name = unique("source")
    create_topic(client, name, 2)
    return name


@pytest.fixture
def member(client: Client, group: str) -> StreamsMember:
    return StreamsMember(client, group, member_id="m-1")


def reading(source: str, **fields: Any) -> dict[str, Any]:
    return topology({"source_topics": (source,), **fields})


def refusal(answer: Any) -> tuple[int, str | None]:
    return answer.error_code, answer.error_message


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"member_id": " "}, Code.INVALID_REQUEST, "MemberId can't be empty."),
        ({"group_id": ""}, Code.INVALID_REQUEST, "GroupId can't be empty."),
        ({"instance_id": ""}, Code.INVALID_REQUEST, "InstanceId can't be empty."),
        ({"rack_id": ""}, Code.INVALID_REQUEST, "RackId can't be empty."),
        (
            {"rebalance_timeout": -1},
            Code.INVALID_REQUEST,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        ({"topology": None}, Code.INVALID_REQUEST, "Topology must be non-null when (re-)joining."),
        (
            encode_tasks({"active": [("0", 0)]}),
            Code.INVALID_REQUEST,
            "ActiveTasks must be empty when (re-)joining.",
        ),
        (
            {"standby_tasks": None},
            Code.INVALID_REQUEST,
            "StandbyTasks must be empty when (re-)joining.",
        ),
        (
            {"member_epoch": 1},
            Code.INVALID_REQUEST,
            "Topology can only be provided when (re-)joining.",
        ),
        (
            {"member_epoch": 1, "topology": None, "warmup_tasks": None},
            Code.INVALID_REQUEST,
            "If one task-type is non-null, all must be non-null.",
        ),
        (
            {"member_epoch": -2, "topology": None},
            Code.INVALID_REQUEST,
            "InstanceId can't be null.",
        ),
        (
            {"member_epoch": -3, "topology": None},
            Code.INVALID_REQUEST,
            "MemberEpoch is -3, but must be greater than or equal to -2.",
        ),
        (
            {"topology": topology({"source_topics": ("a",), "source_topic_regex": ("x.*",)})},
            Code.INVALID_REQUEST,
            "Regular expressions for source topics are not supported yet.",
        ),
        (
            {"topology": topology({"source_topics": ("__consumer_offsets",)})},
            Code.STREAMS_INVALID_TOPOLOGY,
            (
                "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is "
                "prohibited."
            ),
        ),
        (
            {"topology": topology({"source_topics": ("a b", "c!")})},
            Code.STREAMS_INVALID_TOPOLOGY,
            "Topic names a b,c! are not valid topic names.",
        ),
        (
            {
                "topology": topology(
                    {"source_topics": ("a",), "state_changelog_topics": [internal("c", 3)]}
                )
            },
            Code.STREAMS_INVALID_TOPOLOGY,
            "Changelog topic c must have an undefined partition count, but it is set to 3.",
        ),
        (
            {"topology": topology({"repartition_source_topics": [internal("r")]})},
            Code.STREAMS_INVALID_TOPOLOGY,
            (
                "Failed to compute number of partitions for all repartition topics, because a "
                "repartition source topic is never used as a sink topic."
            ),
        ),
        (
            {
                "topology": topology(
                    {
                        "repartition_source_topics": [internal("r")],
                        "repartition_sink_topics": ("r",),
                    }
                )
            },
            Code.STREAMS_INVALID_TOPOLOGY,
            (
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved."
            ),
        ),
        (
            {"topology": topology({"state_changelog_topics": [internal("c")]})},
            Code.STREAMS_INVALID_TOPOLOGY,
            "No source topics found for subtopology 0",
        ),
        (
            {"task_offsets": [{"subtopology_id": "0", "partition": 0, "offset": 1}] * 2},
            Code.INVALID_REQUEST,
            "Task offsets contain a duplicate entry for subtopology 0 and partition 0.",
        ),
        ({"topology": topology(PAIR, epoch=-1)}, Code.UNKNOWN_SERVER_ERROR, None),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(
    member: StreamsMember, source: str, fields: dict[str, Any], code: Code, message: str | None
) -> None:
    answer = member.send(**{**member.joining_fields(reading(source)), **fields})
    assert refusal(answer) == (code, message)


@pytest.mark.parametrize(
    ("partitions", "fields", "detail"),
    [
        (2, {}, None),
        (
            3,
            {},
            "Following topics do not have the same number of partitions: [{SOURCE=2, b=3}]",
        ),
        (
            2,
            {"repartition_source_topics": [internal("r", 5)]},
            (
                "Number of partitions [5] of repartition topic [r] doesn't match number of "
                "partitions [2] of the source topic."
            ),
        ),
    ],
)
def test_copartitioned_topics_have_equally_many_partitions(
    client: Client,
    member: StreamsMember,
    source: str,
    unique: Callable[[str], str],
    partitions: int,
    fields: dict[str, Any],
    detail: str | None,
) -> None:
    other = unique("zother")
    create_topic(client, other, partitions)
    groups = [{"source_topics": (0, 1), "repartition_source_topics": (0,) if fields else ()}]

    def shorten(answer: Any) -> list[tuple[int, str]]:
        return [
            (status.status_code, status.status_detail.replace(source, "SOURCE").replace(other, "b"))
            for status in answer.status
        ]

    expected = [] if detail is None else [(2, detail)]
    joined = shorten(
        member.join(
            topology({"source_topics": (source, other), "copartition_groups": groups, **fields})
        )
    )
    if any(code == MISSING_SOURCE_TOPICS for code, _ in joined):
        joined = eventually(lambda: shorten(member.acknowledge()), expected)
    assert joined == expected


def test_missing_source_topics_are_named_until_they_are_there(
    client: Client, member: StreamsMember, unique: Callable[[str], str]
) -> None:
    names = sorted(unique(f"missing-{number}") for number in range(5))
    answer = member.join(topology({"source_topics": names}))
    [status] = answer.status
    assert status.status_code == 1
    assert status.status_detail == (
        f"Source topics {', '.join(names[:3])} and 2 additional topics are missing."
    )
    assert describe(client, member.group)[0].group_state == "NotReady"
    for name in names:
        create_topic(client, name)
    assert eventually(lambda: member.acknowledge().status, ()) == ()
    assert len(member.tasks["active"]) == 1


def test_a_topic_that_can_not_be_created_is_told(
    member: StreamsMember, source: str, unique: Callable[[str], str]
) -> None:
    name = unique("changelog")
    changelog = {
        "name": name,
        "partitions": 0,
        "topic_configs": [{"key": "nonsense", "value": "x"}],
    }
    member.join(reading(source, state_changelog_topics=[changelog]))

    def tell() -> list[str]:
        return [status.status_detail.replace(name, "C") for status in member.acknowledge().status]

    expected = [
        "Internal topics are missing: C; Creation failed: C (Unknown topic config name: nonsense)."
    ]
    assert eventually(tell, expected) == expected


def test_a_group_of_another_kind_is_no_streams_group(
    client: Client, connect: Callable[[], Client], member: StreamsMember, source: str
) -> None:
    consumer = Consumer(client, member.group)
    consumer.join(source)
    answer = member.send(**member.joining_fields(reading(source)))
    message = f"Group {member.group} is not a streams group."
    assert refusal(answer) == (Code.GROUP_ID_NOT_FOUND, message)
    assert refusal(member.send(member_epoch=1)) == (Code.GROUP_ID_NOT_FOUND, message)
    consumer.leave()
    assert refusal(member.send(**member.joining_fields(reading(source))))[1] == message


def test_an_empty_classic_group_becomes_a_streams_group_and_back(
    client: Client, connect: Callable[[], Client], member: StreamsMember, source: str
) -> None:
    classic = Member(connect(), member.group)
    assert classic.join().error_code == Code.NONE
    message = f"Group {member.group} is not a streams group."
    answer = member.send(**member.joining_fields(reading(source)))
    assert refusal(answer) == (Code.GROUP_ID_NOT_FOUND, message)
    assert classic.leave() == Code.NONE
    commit(client, 8, member.group, {source: [0]})
    member.join(reading(source))
    assert len(member.tasks["active"]) == 2
    newcomer = Member(connect(), member.group)
    assert newcomer.joined(newcomer.post_join()).error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    consumer = Consumer(client, member.group)
    answer = consumer.send(
        member_epoch=0,
        rebalance_timeout=60_000,
        subscribed_topic_names=(source,),
        topic_partitions=(),
    )
    message = f"Group {member.group} is not a consumer group."
    assert refusal(answer) == (Code.GROUP_ID_NOT_FOUND, message)
    [described] = client.send(Api.DESCRIBE_GROUPS, 6, groups=[member.group]).groups
    message = f"Group {member.group} is not a classic group."
    assert refusal(described) == (Code.GROUP_ID_NOT_FOUND, message)
    member.leave()
    assert newcomer.join().error_code == Code.NONE
    [gone] = describe(client, member.group)
    message = f"Group {member.group} is not a streams group."
    assert refusal(gone) == (Code.GROUP_ID_NOT_FOUND, message)


def test_offsets_are_a_member_s_at_its_epoch(
    client: Client, group: str, member: StreamsMember, source: str, other_topic: str
) -> None:
    member.join(reading(source))
    first_epoch = member.epoch
    other = StreamsMember(client, group, process_id="p-2", member_id="m-2")
    other.join(reading(source))
    member.acknowledge()
    member.acknowledge()
    other.acknowledge()
    [(_, kept)] = member.tasks["active"]

    def commit_at(epoch: int, partition: int, version: int = 9, name: str = source) -> Code:
        fields = {"generation": epoch, "member_id": member.member_id}
        return next(iter(commit(client, version, group, {name: [partition]}, **fields).values()))

    assert commit_at(member.epoch, kept) == Code.NONE
    assert commit_at(member.epoch, 1 - kept) == Code.NONE
    assert commit_at(first_epoch, kept) == Code.NONE
    assert commit_at(first_epoch, 1 - kept) == Code.STALE_MEMBER_EPOCH
    assert commit_at(first_epoch, 0, name=other_topic) == Code.STALE_MEMBER_EPOCH
    assert commit_at(member.epoch + 1, kept) == Code.STALE_MEMBER_EPOCH
    assert commit_at(member.epoch, kept, version=8) == Code.UNSUPPORTED_VERSION
    found = commit(client, 9, group, {source: [0]}, generation=-1)
    assert set(found.values()) == {Code.UNKNOWN_MEMBER_ID}
    for epoch, code in ((member.epoch, Code.NONE), (first_epoch, Code.STALE_MEMBER_EPOCH)):
        asked = {"group_id": group, "member_id": member.member_id, "member_epoch": epoch}
        answer = client.send(
            Api.OFFSET_FETCH, 9, groups=[{**asked, "topics": None}], require_stable=False
        )
        assert answer.groups[0].error_code == code


def test_offsets_of_topics_that_are_read_stay_until_the_group_is_empty(
    client: Client, group: str, member: StreamsMember, source: str
) -> None:
    member.join(reading(source))
    fields = {"generation": member.epoch, "member_id": member.member_id}
    commit(client, 9, group, {source: [0], "__consumer_offsets": [0]}, **fields)

    def delete(*names: str) -> list[Code]:
        topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in names]
        answer = client.send(Api.OFFSET_DELETE, 0, group_id=group, topics=topics)
        assert answer.error_code == Code.NONE
        return [part.error_code for topic in answer.topics for part in topic.partitions]

    assert delete(source) == [Code.GROUP_SUBSCRIBED_TO_TOPIC]
    [deleted] = client.send(Api.DELETE_GROUPS, 2, groups_names=[group]).results
    assert deleted.error_code == Code.NON_EMPTY_GROUP
    member.leave()
    assert delete(source) == [Code.NONE]
    [deleted] = client.send(Api.DELETE_GROUPS, 2, groups_names=[group]).results
    assert deleted.error_code == Code.NONE
    [gone] = describe(client, group)
    assert refusal(gone) == (Code.GROUP_ID_NOT_FOUND, f"Group {group} not found.")


def test_a_full_group_takes_no_more_members(client: Client, group: str, source: str) -> None:
    for number in range(10):
        StreamsMember(client, group, member_id=f"m-{number}").join(reading(source))
    late = StreamsMember(client, group, member_id="late")
    answer = late.send(**late.joining_fields(reading(source)))
    assert refusal(answer) == (
        Code.GROUP_MAX_SIZE_REACHED,
        "The streams group has reached its maximum capacity of 10 members.",
    )


def test_an_initial_delay_of_a_group_holds_its_tasks_back(
    client: Client, group: str, member: StreamsMember, source: str
) -> None:
    change = {
        "name": "streams.initial.rebalance.delay.ms",
        "config_operation": 0,
        "value": "700",
    }
    resource = {"resource_type": 32, "resource_name": group, "configs": [change]}
    answer = client.send(Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    assert answer.responses[0].error_code == Code.NONE
    wanted = [(5, "Assignment delayed due to the configured initial rebalance delay.")]

    def join_anew() -> list[tuple[int, str]]:
        member.leave() if member.epoch else None
        joined = member.join(reading(source))
        return [(status.status_code, status.status_detail) for status in joined.status]

    assert eventually(join_anew, wanted) == wanted
    assert not member.tasks["active"]
    assert describe(client, group)[0].group_state == "Assigning"
    assert eventually(lambda: len(member.acknowledge().status), 0) == 0
    assert len(member.tasks["active"]) == 2


def test_a_group_s_interval_of_task_offsets_is_told(
    client: Client, group: str, source: str
) -> None:
    change = {"name": "streams.task.offset.interval.ms", "config_operation": 0, "value": "30000"}
    resource = {"resource_type": 32, "resource_name": group, "configs": [change]}
    answer = client.send(Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    assert answer.responses[0].error_code == Code.NONE, answer
    member = StreamsMember(client, group)
    member.join(reading(source))
    interval = timedelta(seconds=30)
    assert eventually(lambda: member.beat().task_offset_interval, interval) == interval


def test_tasks_are_told_once_and_described_ever_after(
    client: Client, group: str, member: StreamsMember, source: str
) -> None:
    """Check what a member relies on that has missed an answer: to report its tasks helps not."""
    other = StreamsMember(client, group, process_id="other", member_id="m-2")
    member.join(reading(source))
    other.join(reading(source))

    def share() -> list[int]:
        for each in (member, other):
            each.acknowledge()
        return [len(each.tasks["active"]) for each in (member, other)]

    assert eventually(share, [1, 1]) == [1, 1]
    other.leave()
    before = encode_tasks(member.tasks)

    def miss_tasks() -> bool:
        answer = member.send(**before)
        member.epoch = answer.member_epoch
        return answer.active_tasks is not None

    assert eventually(miss_tasks, True)
    assert member.beat(**before).active_tasks is None
    (described,) = describe(client, group)[0].members
    assert described.member_epoch == member.epoch
    assert len(tasks_of(described.assignment)["active"]) == 2
