"""Test a coordinator with a damaged log, and that all others answer as ever.

The broker is one of these cases' own. It is stopped cleanly, one record of a partition of
`__consumer_offsets` and one of `__transaction_state` are damaged so that they can't be decoded,
under a checksum that is right, and it is started again. (Kafka looks at no checksum there.)
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from coordinator.errors import Code
from coordinator.shard.placement import partition_for
from tests import brokers
from tests.answers import codes
from tests.brokers import Broker
from tests.conformance.calls import (
    READ_COMMITTED,
    commit_offset,
    committed,
    create_topic,
    end_offset,
    eventually,
    settled,
    settled_offset,
)
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client, plain

SHARDS = 4  # see `brokers.SETTINGS`
DAMAGED = 0


def named(stem: str, shard: int) -> str:
    """Return a group or transactional id that belongs to this shard."""
    return next(f"{stem}{i}" for i in range(1_000) if partition_for(f"{stem}{i}", SHARDS) == shard)


BAD_GROUP, GOOD_GROUP = named("group", DAMAGED), named("group", 1)
BAD_ID, OTHER_BAD_ID = named("txn", DAMAGED), named("another", DAMAGED)
GOOD_ID = named("txn", 1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "damaged" in metafunc.fixturenames:
        chosen = brokers.choices(metafunc.config.getoption("--broker") or "both")
        metafunc.parametrize("damaged", chosen, indirect=True, scope="module")


@dataclass
class Damaged:
    """Holds the broker after its second start, and producers that had begun before."""

    broker: Broker
    client: Client
    of_bad_shard: Producer
    with_bad_group: Producer


@pytest.fixture(scope="module")
def damaged(request: pytest.FixtureRequest) -> Iterator[Damaged]:
    reason = brokers.reason_to_skip(request.param)
    if reason and brokers.in_ci():
        pytest.fail(f"{reason} (in CI this is a failure)")
    if reason or request.param not in ("embedded", "kafka"):
        pytest.skip(reason or f"the files of {request.param} are not at hand")
    broker = brokers.make(request.param)
    try:
        broker.start()
        with Client(broker.bootstrap_servers) as client:
            begun = prepare(client)
        broker.stop()
        break_record(broker.data_dir / f"__consumer_offsets-{DAMAGED}", 0)
        break_record(broker.data_dir / f"__transaction_state-{DAMAGED}", 1)
        broker.restart()
        with Client(broker.bootstrap_servers) as client:
            for each in begun:
                each.client = client
            eventually(lambda: committed(client, GOOD_GROUP, "words"), 5)
            settled(
                lambda: OF_GROUP["OffsetFetch"](client, BAD_GROUP),
                (Code.COORDINATOR_LOAD_IN_PROGRESS,),
            )
            yield Damaged(broker, client, *begun)
    finally:
        broker.close()


def prepare(client: Client) -> tuple[Producer, Producer]:
    """Commit offsets of both groups, and open two transactions that meet the damage.

    One is of the shard that will be damaged, one has offsets of the group whose shard will be.
    """
    for kind in (0, 1):
        client.send(Api.FIND_COORDINATOR, 2, key="anything", key_type=kind)
    for topic in ("words", "lines"):
        create_topic(client, topic)
    for group in (BAD_GROUP, GOOD_GROUP):
        assert commit_offset(client, group, "words", 5) == Code.NONE
    of_bad_shard = Producer.init(client, BAD_ID)
    of_bad_shard.add("words")
    assert of_bad_shard.write("words", b"open").error_code == Code.NONE
    Producer.init(client, OTHER_BAD_ID)  # behind the damage
    with_bad_group = Producer.init(client, GOOD_ID)
    with_bad_group.add("lines")
    assert with_bad_group.write("lines", b"a").error_code == Code.NONE
    assert with_bad_group.add_offsets(BAD_GROUP) == Code.NONE
    assert with_bad_group.stage_offset(BAD_GROUP, "lines", 1) == Code.NONE
    return of_bad_shard, with_bad_group


def break_record(directory: Path, index: int) -> None:
    """Cut off the value of the record in this batch in the middle of a field."""
    path = directory / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    at = 0
    for _ in range(index):
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    data[end - 20 : end - 3] = b"\xff" * 17 if "transaction" in path.parent.name else b"\x7f" * 17
    struct.pack_into(">I", data, at + 17, crc32c(bytes(data[at + 21 : end])))
    path.write_bytes(data)


def ask(client: Client, api: Api, version: int, **fields: Any) -> Any:
    """Return the first response, whatever it is."""
    return client.receive(client.post(api, version, **fields))


OFFSET = {
    "partition_index": 0,
    "committed_offset": 7,
    "committed_leader_epoch": -1,
    "committed_metadata": "",
}
OF_GROUP: dict[str, Callable[[Client, str], Any]] = {
    "OffsetCommit": lambda client, group: ask(
        client,
        Api.OFFSET_COMMIT,
        8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": "words", "partitions": [OFFSET]}],
    ),
    "OffsetFetch": lambda client, group: ask(
        client,
        Api.OFFSET_FETCH,
        9,
        groups=[
            {
                "group_id": group,
                "member_id": None,
                "member_epoch": -1,
                "topics": [{"name": "words", "partition_indexes": [0]}],
            }
        ],
    ),
    "JoinGroup": lambda client, group: ask(
        client,
        Api.JOIN_GROUP,
        5,
        group_id=group,
        session_timeout=10_000,
        rebalance_timeout=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    ),
    "SyncGroup": lambda client, group: ask(
        client, Api.SYNC_GROUP, 3, group_id=group, generation_id=1, member_id="m"
    ),
    "Heartbeat": lambda client, group: ask(
        client, Api.HEARTBEAT, 3, group_id=group, generation_id=1, member_id="m"
    ),
    "LeaveGroup": lambda client, group: ask(
        client, Api.LEAVE_GROUP, 1, group_id=group, member_id="m"
    ),
    "ConsumerGroupHeartbeat": lambda client, group: ask(
        client,
        Api.CONSUMER_GROUP_HEARTBEAT,
        1,
        group_id=group,
        member_id="m",
        member_epoch=0,
        rebalance_timeout=10_000,
        subscribed_topic_names=["words"],
        topic_partitions=[],
    ),
    "DescribeGroups": lambda client, group: ask(client, Api.DESCRIBE_GROUPS, 5, groups=[group]),
    "ConsumerGroupDescribe": lambda client, group: ask(
        client, Api.CONSUMER_GROUP_DESCRIBE, 0, group_ids=[group]
    ),
    "OffsetDelete": lambda client, group: ask(
        client,
        Api.OFFSET_DELETE,
        0,
        group_id=group,
        topics=[{"name": "words", "partitions": [{"partition_index": 0}]}],
    ),
    "DeleteGroups": lambda client, group: ask(client, Api.DELETE_GROUPS, 2, groups_names=[group]),
}


@pytest.mark.parametrize("request_", OF_GROUP)
def test_every_request_of_a_group_is_refused_where_the_log_is_damaged(
    damaged: Damaged, request_: str
) -> None:
    answer = OF_GROUP[request_](damaged.client, BAD_GROUP)
    assert set(codes(answer)) - {Code.NONE} == {Code.NOT_COORDINATOR}, answer


def test_what_a_group_is_told_of_its_coordinator_is_that_there_is_one(damaged: Damaged) -> None:
    for key, kind in ((BAD_GROUP, 0), (BAD_ID, 1)):
        found = ask(damaged.client, Api.FIND_COORDINATOR, 2, key=key, key_type=kind)
        assert found.error_code == Code.NONE


def test_the_groups_of_the_other_shards_are_listed_and_served(damaged: Damaged) -> None:
    client = damaged.client
    listed = ask(client, Api.LIST_GROUPS, 4)
    assert listed.error_code == Code.NONE
    assert [each.group_id for each in listed.groups] == [GOOD_GROUP]
    assert committed(client, GOOD_GROUP, "words") == 5
    assert commit_offset(client, GOOD_GROUP, "words", 6) == Code.NONE
    assert committed(client, GOOD_GROUP, "words") == 6


def test_a_commit_with_offsets_in_a_damaged_log_is_decided_and_waits_for_it(
    damaged: Damaged,
) -> None:
    producer, client = damaged.with_bad_group, damaged.client
    who = {
        "transactional_id": producer.transactional_id,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
    }
    staged = ask(
        client,
        Api.TXN_OFFSET_COMMIT,
        3,
        **who,
        group_id=BAD_GROUP,
        generation_id=-1,
        member_id="",
        topics=[{"name": "lines", "partitions": [OFFSET]}],
    )
    assert set(codes(staged)) == {Code.NOT_COORDINATOR}
    assert ask(client, Api.END_TXN, 1, **who, committed=True).error_code == Code.NONE
    assert eventually(lambda: end_offset(client, "lines", isolation=READ_COMMITTED), 2) == 2

    def left() -> tuple[str, Any]:
        answer = ask(client, Api.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[GOOD_ID])
        (state,) = plain(answer)["transaction_states"]
        return state["transaction_state"], state["topics"]

    waiting = ("PrepareCommit", [{"topic": "__consumer_offsets", "partitions": [DAMAGED]}])
    assert eventually(left, waiting) == waiting
    fields = {"transactional_id": GOOD_ID, "transaction_timeout": 60_000}
    again = ask(client, Api.INIT_PRODUCER_ID, 4, **fields, producer_id=-1, producer_epoch=-1)
    assert again.error_code == Code.CONCURRENT_TRANSACTIONS


def test_transactional_ids_of_a_damaged_log_are_refused_and_stay_as_they_are(
    damaged: Damaged,
) -> None:
    """Check ids of a damaged log, of which Kafka serves those that come before the damage.

    It has forgotten what comes after it.
    """
    client, producer = damaged.client, damaged.of_bad_shard
    fields = {"transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
    # Kafka's first producer id of a start takes a moment.
    fenced = settled(
        lambda: ask(client, Api.INIT_PRODUCER_ID, 4, transactional_id=OTHER_BAD_ID, **fields),
        (Code.COORDINATOR_LOAD_IN_PROGRESS,),
    )
    if damaged.broker.kind == "kafka":
        assert (fenced.error_code, fenced.producer_epoch) == (Code.NONE, 0), "it is a new one"
        return
    assert fenced.error_code == Code.NOT_COORDINATOR
    who = {
        "transactional_id": BAD_ID,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
    }
    partitions = [{"name": "words", "partitions": (0,)}]
    prefixed = {f"v3_and_below_{name}": value for name, value in who.items()}
    for answer in (
        ask(client, Api.ADD_PARTITIONS_TO_TXN, 0, **prefixed, v3_and_below_topics=partitions),
        ask(client, Api.ADD_OFFSETS_TO_TXN, 0, **who, group_id=GOOD_GROUP),
        ask(client, Api.END_TXN, 1, **who, committed=True),
        ask(client, Api.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[BAD_ID]),
    ):
        assert set(codes(answer)) == {Code.NOT_COORDINATOR}, answer
    listed = ask(client, Api.LIST_TRANSACTIONS, 0)
    assert listed.error_code == Code.NONE
    assert [each.transactional_id for each in listed.transaction_states] == [GOOD_ID]
    assert end_offset(client, "words", isolation=READ_COMMITTED) == 0, "it is still open"


def test_the_damage_stays_and_is_told_until_it_is_repaired_as_the_docs_say(
    damaged: Damaged,
) -> None:
    if damaged.broker.kind == "kafka":
        pytest.skip("it has no such repair")
    broker, forgotten = damaged.broker, damaged.of_bad_shard
    damaged.client.close()
    broker.restart()
    with Client(broker.bootstrap_servers) as client:
        answer = OF_GROUP["Heartbeat"](client, BAD_GROUP)
        assert answer.error_code == Code.NOT_COORDINATOR
        assert commit_offset(client, GOOD_GROUP, "words", 9) == Code.NONE
    broker.stop()
    for topic in ("__consumer_offsets", "__transaction_state"):
        name = f"{topic}-{DAMAGED}"
        told = rf"ERROR {name} can't be loaded.* (/\S+/{name}/\d+\.log), from byte (\d+) to"
        file, position = re.findall(told, broker.log_tail())[-1]
        command = [sys.executable, "-m", "coordinator.repair", file, position]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"given up: bytes {position} to ")
    broker.start()
    with Client(broker.bootstrap_servers) as client:
        assert committed(client, BAD_GROUP, "words") == -1, "that was in the damaged batch"
        assert settled_offset(client, BAD_GROUP, "lines") == 1, "that waited for the repair"
        assert commit_offset(client, BAD_GROUP, "words", 6) == Code.NONE
        again = Producer.init(client, GOOD_ID)
        assert again.epoch == damaged.with_bad_group.epoch + 1
        known = Producer.init(client, BAD_ID)
        assert known.producer_id == forgotten.producer_id
        assert known.epoch == forgotten.epoch + 1
        assert Producer.init(client, OTHER_BAD_ID).epoch == 1
        assert committed(client, GOOD_GROUP, "words") == 9
