"""Put groups and transactions in every state into a broker before its files are moved.

Everything is written by requests, but for PrepareCommit, which lasts for milliseconds only: its
record is put at the end of the log (see `prepare`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from coordinator.errors import Code
from coordinator.shard.placement import partition_for
from coordinator.transactions.records import TransactionCodec
from coordinator.transactions.state import TransactionSaved, TransactionStatus
from tests.brokers import Broker
from tests.conformance.calls import commit_offset, create_topic, eventually, settled_offset
from tests.conformance.members import Member, alone, together
from tests.conformance.producers import Producer
from tests.conformance.streams_members import StreamsMember, topology
from tests.conformance.transactions import describe
from tests.conformance.wire import Api, Client
from tests.processes import wait_until
from tests.upgrade.answers import Answers, ask
from tests.upgrade.moving import GROUPS, PARTITIONS, TRANSACTIONS, append_record, log_of

TOPIC, WIDE = "words", "wide"
TOPICS = {TOPIC: 4, WIDE: 20}
CLASSIC = ("classic-stable", "classic-empty", "offsets-only")
TRANSACTIONAL = ("in-transactions", "pending", "to-commit", "to-abort")
BULKY = ("bulky-0", "bulky-1")  # one a partition of __consumer_offsets
MODERN = ("modern", "modern-regex", "modern-static", "modern-away", "modern-empty")
MIXED = "modern-mixed"
STREAMS = "streams"
OF_CLASSIC, OF_STREAMS = CONVERTED = "streams-of-classic", "classic-of-streams"
FOREIGN = ("share",)
TRANSACTION_IDS = ("t-empty", "t-committed", "t-aborted", "t-ongoing", "t-to-commit", "t-to-abort")
# Transactions that are decided, and carried out by whoever loads them; the group that the offset of
# each is for; and what they, and it, then are.
PREPARED = {
    "t-to-commit": ("to-commit", TransactionStatus.PREPARE_COMMIT),
    "t-to-abort": ("to-abort", TransactionStatus.PREPARE_ABORT),
}
CARRIED_OUT = {"t-to-commit": ("CompleteCommit", 51), "t-to-abort": ("CompleteAbort", 50)}
PLAIN = (*CLASSIC, *TRANSACTIONAL, *BULKY)
KIB = "x" * 1_024
SESSION_MS = 300_000  # nobody heartbeats while brokers come and go
# What real Kafka and every commit of ours have.
SETTINGS = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "transaction.state.log.num.partitions": str(PARTITIONS),
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "100",
}


def populate(broker: Broker, *, kinds: tuple[str, ...] = ()) -> None:
    """Create everything that isn't open at the end, then compact; TOPICS are there.

    `kinds`: of the groups that aren't classic, which the broker has.
    """
    for number, name in enumerate(BULKY):
        assert partition_for(name, PARTITIONS) == number
    with connect(broker) as client, connect(broker) as other:
        for kind in (0, 1):
            client.send(Api.FIND_COORDINATOR, 2, key="anything", key_type=kind)
        small_segments(client)
        classic_groups(client, other)
        offsets_of_a_deleted_topic(client)
        completed_transactions(client)
        if "consumer" in kinds:
            consumer_groups(client)
        if "mixed" in kinds:
            mixed_group(client)
        if "share" in kinds:
            share_group(client)
        if STREAMS in kinds:
            streams_group(client)
            converted_groups(client)
        be_compacted(client, broker.data_dir)


def make_topics(broker: Broker) -> None:
    with connect(broker) as client:
        for name, partitions in TOPICS.items():
            create_topic(client, name, partitions)


def connect(broker: Broker) -> Client:
    return Client(broker.bootstrap_servers, complete=broker.kind == "kafka")


def small_segments(client: Client) -> None:
    """Set segments of 1 MiB, the least that Kafka takes."""
    change = {"name": "segment.bytes", "config_operation": 0, "value": str(1 << 20)}
    resource = {"resource_type": 2, "resource_name": GROUPS, "configs": [change]}
    answer = client.send(
        Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False
    )
    assert answer.responses[0].error_code == Code.NONE, answer


def classic_groups(client: Client, other: Client) -> None:
    first = Member(client, "classic-stable", user_data=b"first", session_timeout_ms=SESSION_MS)
    second = Member(other, "classic-stable", instance_id="i-2", session_timeout_ms=SESSION_MS)
    together(alone(first), second)
    who: dict[str, Any] = {"generation": first.generation, "member_id": first.member_id}
    for partition in range(4):
        code = commit_offset(
            *(client, "classic-stable", TOPIC, 10 + partition),
            **{**who, "partition": partition, "metadata": f"of {partition}"},
        )
        assert code == Code.NONE
    left = alone(Member(client, "classic-empty"))
    who = {"generation": left.generation, "member_id": left.member_id}
    assert commit_offset(client, "classic-empty", TOPIC, 20, **who) == Code.NONE
    assert left.leave() == Code.NONE
    commit(client, "offsets-only", TOPIC, [offset(1, 30, "wörter", leader_epoch=0)])


def offset(index: int, value: int, metadata: str = "", leader_epoch: int = -1) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": value,
        "committed_leader_epoch": leader_epoch,
        "committed_metadata": metadata,
    }


def commit(
    client: Client,
    group: str,
    topic: str,
    partitions: list[dict[str, Any]],
    member: str = "",
    epoch: int = -1,
) -> None:
    """Send OffsetCommit as a member of a consumer group, or as nobody in particular."""
    answer = client.send(
        Api.OFFSET_COMMIT,
        9,
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=[{"name": topic, "partitions": partitions}],
    )
    assert {each.error_code for each in answer.topics[0].partitions} == {Code.NONE}, answer


def offsets_of_a_deleted_topic(client: Client) -> None:
    create_topic(client, "doomed")
    assert commit_offset(client, "forgotten", "doomed", 5) == Code.NONE
    answer = client.send(Api.DELETE_TOPICS, 4, topic_names=["doomed"], timeout=10_000)
    assert answer.responses[0].error_code == Code.NONE


def completed_transactions(client: Client) -> None:
    Producer.init(client, "t-empty")
    producer = Producer.init(client, "t-committed")
    producer.add(TOPIC)
    producer.write(TOPIC, b"committed")
    assert producer.add_offsets("in-transactions") == Code.NONE
    assert producer.stage_offset("in-transactions", TOPIC, 40, metadata="staged") == Code.NONE
    producer.commit()
    producer = Producer.init(client, "t-aborted")
    producer.add(TOPIC)
    producer.write(TOPIC, b"aborted")
    assert producer.add_offsets("in-transactions") == Code.NONE
    assert producer.stage_offset("in-transactions", TOPIC, 41) == Code.NONE
    producer.abort()
    for name, state in (("t-committed", "CompleteCommit"), ("t-aborted", "CompleteAbort")):
        assert eventually(partial(state_of, client, name), state) == state


def state_of(client: Client, transactional_id: str) -> str:
    return describe(client, transactional_id).state


def be_compacted(client: Client, data: Path) -> None:
    """Commit offsets with much metadata again and again, until the cleaner has been there."""
    partitions = [offset(index, index, KIB * 4) for index in range(TOPICS[WIDE])]
    for group in BULKY:
        for _ in range(30):
            commit(client, group, WIDE, partitions)
    checkpoint = data / "cleaner-offset-checkpoint"
    wait_until(
        lambda: (
            checkpoint.exists()
            and len(re.findall(rf"^{GROUPS} . [1-9]", checkpoint.read_text(), re.MULTILINE))
            == PARTITIONS
        ),
        what=lambda: f"not cleaned: {checkpoint.read_text() if checkpoint.exists() else ''}",
    )


def open_transactions(client: Client, timeout_ms: int = 900_000) -> None:
    """Open transactions, each with an offset that counts and one that is pending."""
    groups = {"t-ongoing": "pending"} | {name: group for name, (group, _) in PREPARED.items()}
    for transactional_id, group in groups.items():
        assert commit_offset(client, group, TOPIC, 50, metadata="before") == Code.NONE
        producer = Producer.init(client, transactional_id, timeout_ms)
        assert producer.add_offsets(group) == Code.NONE
        assert producer.stage_offset(group, TOPIC, 51, metadata="after") == Code.NONE


def prepare(data: Path) -> None:
    """Decide PREPARED in a stopped broker's files, while no marker is there yet."""
    codec = TransactionCodec(lambda: 2)
    for transactional_id, (_, status) in PREPARED.items():
        directory = data / f"{TRANSACTIONS}-{partition_for(transactional_id, PARTITIONS)}"
        *_, last = (
            saved.transaction
            for batch in log_of(directory)
            for record in batch.iterate_records()
            if isinstance(saved := codec.decode_record(record.key, record.value), TransactionSaved)
            and saved.transaction.transactional_id == transactional_id
        )
        assert last.status is TransactionStatus.ONGOING
        key, value = codec.encode_record(TransactionSaved(replace(last, status=status)))
        assert value is not None
        append_record(directory, key, value)


# What a broker says of all this


def said(broker: Broker, groups: tuple[str, ...]) -> Answers:
    """Ask for these groups and the transactions, but for PREPARED, which are looked at apart."""
    apart = {group for group, _ in PREPARED.values()}
    with connect(broker) as client:
        return ask(
            client,
            [name for name in groups if name not in apart],
            [name for name in TRANSACTION_IDS if name not in PREPARED],
        )


def carried_out(broker: Broker) -> dict[str, tuple[str, int]]:
    """Return state and offset of PREPARED, which should be CARRIED_OUT right after the start."""
    found = {}
    with connect(broker) as client:
        for name, (group, _) in PREPARED.items():
            state = eventually(partial(state_of, client, name), CARRIED_OUT[name][0])
            found[name] = (state, settled_offset(client, group, TOPIC))
    return found


# Groups that aren't classic


def heartbeat(client: Client, group: str, member: str, epoch: int = 0, **fields: Any) -> Any:
    """Send ConsumerGroupHeartbeat, which joins if the epoch is 0."""
    if epoch == 0:
        fields = {"rebalance_timeout": 60_000, "topic_partitions": (), **fields}
    answer = client.send(
        Api.CONSUMER_GROUP_HEARTBEAT,
        1,
        **{"group_id": group, "member_id": member, "member_epoch": epoch, **fields},
    )
    assert answer.error_code == Code.NONE, answer
    return answer


def until_assigned(client: Client, group: str, member: str, epoch: int) -> Any:
    """Send heartbeats until there is something new to own, or to give up."""
    answers: list[Any] = []

    def assigned() -> bool:
        answers.append(
            heartbeat(client, group, member, answers[-1].member_epoch if answers else epoch)
        )
        return answers[-1].assignment is not None

    wait_until(assigned, what=lambda: f"{member} of {group}: {answers[-1]}")
    return answers[-1]


def consumer_groups(client: Client) -> None:
    """Create consumer groups in different states.

    One is in the middle of a rebalance, one has a regular expression, one a static member, one a
    static member that is away, and one is empty.
    """
    joined = heartbeat(client, "modern", "m-1", subscribed_topic_names=(TOPIC, WIDE), rack_id="r-1")
    first = joined if joined.assignment else until_assigned(client, "modern", "m-1", 1)
    owned = [
        {"topic_id": each.topic_id, "partitions": each.partitions}
        for each in first.assignment.topic_partitions
    ]
    heartbeat(client, "modern", "m-1", first.member_epoch, topic_partitions=owned)
    heartbeat(client, "modern", "m-2", subscribed_topic_names=(TOPIC,), server_assignor="uniform")
    told = until_assigned(client, "modern", "m-1", first.member_epoch)
    commit(client, "modern", TOPIC, [offset(0, 60)], "m-1", told.member_epoch)
    joined = heartbeat(client, "modern-regex", "m-3", subscribed_topic_regex="wor.*")
    until_assigned(client, "modern-regex", "m-3", joined.member_epoch)
    heartbeat(client, "modern-static", "m-4", instance_id="i-4", subscribed_topic_names=(TOPIC,))
    away: dict[str, Any] = {"instance_id": "i-6", "subscribed_topic_names": (TOPIC,)}
    heartbeat(client, "modern-away", "m-6", **away)
    heartbeat(client, "modern-away", "m-6", -2, instance_id="i-6")
    left = heartbeat(client, "modern-empty", "m-5", subscribed_topic_names=(TOPIC,))
    commit(client, "modern-empty", TOPIC, [offset(0, 61)], "m-5", left.member_epoch)
    heartbeat(client, "modern-empty", "m-5", -1)


def mixed_group(client: Client) -> None:
    """Create a consumer group that a member with the classic protocol has joined."""
    heartbeat(client, MIXED, "m-7", subscribed_topic_names=(TOPIC,))
    classic = Member(client, MIXED, session_timeout_ms=SESSION_MS)
    assert classic.join().error_code == Code.NONE


def share_group(client: Client) -> None:
    answer = client.send(
        Api.SHARE_GROUP_HEARTBEAT,
        1,
        group_id="share",
        member_id="AAAAAAAAAAEAAAAAAAAAAg",
        member_epoch=0,
        subscribed_topic_names=(TOPIC,),
    )
    assert answer.error_code == Code.NONE, answer


def streams_group(client: Client) -> None:
    """Create a streams group of a static member, which has tasks to revoke, and another one."""
    shape = topology({"source_topics": (TOPIC,)}, {"source_topics": (WIDE,)})
    first = StreamsMember(client, STREAMS, "i-1", "p-1", "s-1")
    second = StreamsMember(client, STREAMS, None, "p-2", "s-2")
    first.join(shape, rack_id="r")
    second.join(shape, user_endpoint={"host": "h", "port": 60_000})
    first.acknowledge(client_tags=[{"key": "zone", "value": "z"}])
    commit(client, STREAMS, TOPIC, [offset(0, 71)], first.member_id, first.epoch)


def converted_groups(client: Client) -> None:
    """Create a streams group that was an empty classic one with an offset, and the other way."""
    classic = Member(client, OF_CLASSIC)
    assert classic.join().error_code == Code.NONE
    assert classic.leave() == Code.NONE
    commit(client, OF_CLASSIC, TOPIC, [offset(0, 81)])
    shape = topology({"source_topics": (TOPIC,)})
    StreamsMember(client, OF_CLASSIC, None, "p-3", "s-3").join(shape)
    member = StreamsMember(client, OF_STREAMS, None, "p-4", "s-4")
    member.join(shape)
    commit(client, OF_STREAMS, TOPIC, [offset(0, 82)], member.member_id, member.epoch)
    assert member.leave().error_code == Code.NONE
    joined = Member(client, OF_STREAMS, session_timeout_ms=SESSION_MS)
    assert joined.join().error_code == Code.NONE
