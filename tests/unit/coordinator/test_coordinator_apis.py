"""Every version of the coordinators' APIs is answered, with the codes of that version."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from kio.index import load_payload_module
from kio.static.constants import EntityType

from coordinator.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_groups,
    end_txn,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_fetch,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from coordinator.api.context import Context
from coordinator.config import BrokerConfig
from coordinator.coordinators import Coordinators
from coordinator.errors import Code, Refused
from coordinator.wire.codec import build, encode
from tests.unit.coordinator.fakes import FakeClock, FakeLog

WORDS_ID = UUID(int=77)


class FakeTopics:
    """Topics on logs in memory; `words` has two partitions."""

    def __init__(self) -> None:
        self._topics: dict[str, Any] = {}
        self.when_deleted: list[Callable[[Any], None]] = []
        self.create("words", 2)

    def create(self, name: str, partitions: int, configs: Mapping[str, str] = {}) -> Any:
        topic_id = WORDS_ID if name == "words" else UUID(int=len(self._topics) + 1000)
        logs = [FakeLog() for _ in range(partitions)]
        self._topics[name] = SimpleNamespace(name=name, id=topic_id, partitions=logs)
        return self._topics[name]

    def get(self, name: str) -> Any:
        return self._topics.get(name)

    def by_id(self, topic_id: UUID | None) -> Any:
        return next((t for t in self._topics.values() if t.id == topic_id), None)

    def partition(self, name: str, index: int) -> Any:
        topic = self.get(name)
        return topic.partitions[index] if topic and 0 <= index < len(topic.partitions) else None


class FakeBroker:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.topics = cast(Any, FakeTopics())
        self.config = BrokerConfig(
            data_dir=Path("/nowhere"),
            offsets_topic_num_partitions=2,
            transaction_state_log_num_partitions=2,
        )
        self.endpoint = {"node_id": 1, "host": "127.0.0.1", "port": 9092, "rack": None}
        self.coordinators = Coordinators(self.topics, self.config, self.clock, self.clock)
        self.coordinators.load()

    def start(self, api: ModuleType, version: int, **fields: Any) -> Any:
        """What the router would be given for a request: a response, or something to await."""
        module = load_payload_module(api.API_KEY, version, EntityType.request)
        request = build(_entity(module, EntityType.request), fields)
        module = load_payload_module(api.API_KEY, version, EntityType.response)
        context = Context(
            self,  # type: ignore[arg-type]
            version,
            "client",
            "127.0.0.1",
            _entity(module, EntityType.response),
        )
        try:
            return api.handle(request, context)
        except Refused as refused:
            refuse = getattr(api, "refuse", None)
            if refuse is None:
                return context.reply(error_code=refused.code)
            return refuse(request, context, refused.code)

    def send(self, api: ModuleType, version: int, **fields: Any) -> Any:
        """The response, which must be one that can be written to the wire."""

        async def answered() -> Any:
            response = self.start(api, version, **fields)
            if not asyncio.iscoroutine(response):
                return response
            asyncio.get_running_loop().call_soon(self.clock.advance, 0)
            return await response

        response = asyncio.run(answered())
        assert encode(1, response)
        return response


def _entity(module: Any, kind: EntityType) -> Any:
    return next(
        found for found in vars(module).values() if getattr(found, "__type__", None) is kind
    )


def in_versions(api: ModuleType) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", api.VERSIONS)


def joined(broker: FakeBroker) -> tuple[str, int]:
    """A member on its own in the group: (member id, generation)."""

    async def join() -> Any:
        first = broker.start(join_group, 9, **_JOIN, member_id="")
        second = broker.start(join_group, 9, **_JOIN, member_id=first.member_id)
        asyncio.get_running_loop().call_soon(broker.clock.advance, 0)
        return await second

    response = asyncio.run(join())
    assert response.error_code == Code.NONE
    synced = broker.send(
        sync_group,
        5,
        group_id="counts",
        generation_id=response.generation_id,
        member_id=response.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": response.member_id, "assignment": b"all"}],
    )
    assert synced.assignment == b"all"
    return response.member_id, response.generation_id


_JOIN: dict[str, Any] = {
    "group_id": "counts",
    "session_timeout": 10_000,
    "rebalance_timeout": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b"m"}],
}


@in_versions(find_coordinator)
@pytest.mark.parametrize(("key_type", "code"), [(0, 0), (1, 0), (2, Code.INVALID_REQUEST)])
def test_this_broker_coordinates_everything(version: int, key_type: int, code: int) -> None:
    response = FakeBroker().send(
        find_coordinator, version, key="a", key_type=key_type, coordinator_keys=["a"]
    )
    found = response.coordinators[0] if version >= 4 else response
    if version == 0:
        code = 0
    assert found.error_code == code
    assert found.port == (9092 if code == 0 else -1)


@in_versions(init_producer_id)
def test_init_producer_id(version: int) -> None:
    broker = FakeBroker()
    fields = {"transactional_id": "app", "transaction_timeout": 1000}
    first = broker.send(init_producer_id, version, **fields)
    assert (first.error_code, first.producer_id, first.producer_epoch) == (0, 0, 0)
    broker.send(init_producer_id, version, **fields)
    stale = broker.send(init_producer_id, version, **fields, producer_id=9, producer_epoch=0)
    if version >= 3:
        expected = Code.PRODUCER_FENCED if version >= 4 else Code.INVALID_PRODUCER_EPOCH
        assert (stale.error_code, stale.producer_id) == (expected, -1)
    too_long = broker.send(
        init_producer_id, version, transactional_id="app", transaction_timeout=900_001
    )
    assert too_long.error_code == Code.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize("half", [{"producer_id": 7}, {"producer_epoch": 7}])
def test_a_producer_id_without_an_epoch_is_an_invalid_request(half: dict[str, int]) -> None:
    fields: dict[str, Any] = {"transactional_id": "app", "transaction_timeout": 1000}
    response = FakeBroker().send(
        init_producer_id, 5, **{"producer_id": -1, "producer_epoch": -1, **fields, **half}
    )
    assert response.error_code == Code.INVALID_REQUEST


def transactional(broker: FakeBroker, epoch: int = 0) -> dict[str, Any]:
    if broker.coordinators.transactions.find("app") is None:
        broker.send(init_producer_id, 5, transactional_id="app", transaction_timeout=1000)
    return {"transactional_id": "app", "producer_id": 0, "producer_epoch": epoch}


def add_partitions(
    broker: FakeBroker, version: int, partitions: list[int], epoch: int = 0
) -> dict[int, int]:
    producer = transactional(broker, epoch)
    topics = [{"name": "words", "partitions": partitions}]
    response = broker.send(
        add_partitions_to_txn,
        version,
        transactions=[{**producer, "topics": topics}],
        v3_and_below_topics=topics,
        **{f"v3_and_below_{name}": value for name, value in producer.items()},
    )
    if version < 4:
        [topic] = response.results_by_topic_v3_and_below
    else:
        [topic] = response.results_by_transaction[0].topic_results
    return {
        found.partition_index: found.partition_error_code for found in topic.results_by_partition
    }


@in_versions(add_partitions_to_txn)
def test_add_partitions_to_txn(version: int) -> None:
    broker = FakeBroker()
    assert add_partitions(broker, version, [0, 1]) == {0: 0, 1: 0}
    fenced = Code.PRODUCER_FENCED if version >= 2 else Code.INVALID_PRODUCER_EPOCH
    assert add_partitions(broker, version, [0], epoch=7) == {0: fenced}


@in_versions(add_partitions_to_txn)
def test_an_unknown_partition_keeps_all_others_out(version: int) -> None:
    broker = FakeBroker()
    assert add_partitions(broker, version, [0, 5]) == {
        0: Code.OPERATION_NOT_ATTEMPTED,
        5: Code.UNKNOWN_TOPIC_OR_PARTITION,
    }
    transaction = broker.coordinators.transactions.find("app")
    assert transaction is not None
    assert transaction.partitions == frozenset()


@in_versions(end_txn)
def test_end_txn(version: int) -> None:
    broker = FakeBroker()
    producer = transactional(broker)
    add_partitions(broker, 3, [0])
    assert broker.send(end_txn, version, **producer, committed=True).error_code == 0
    assert broker.topics.partition("words", 0).markers() == [(0, 0, True)]
    old = broker.send(end_txn, version, **{**producer, "producer_epoch": 7}, committed=True)
    expected = Code.PRODUCER_FENCED if version >= 2 else Code.INVALID_PRODUCER_EPOCH
    assert old.error_code == expected
    turned = broker.send(end_txn, version, **producer, committed=False)
    assert turned.error_code == Code.INVALID_TXN_STATE


@in_versions(add_offsets_to_txn)
def test_add_offsets_to_txn(version: int) -> None:
    broker = FakeBroker()
    producer = transactional(broker)
    added = broker.send(add_offsets_to_txn, version, **producer, group_id="counts")
    assert added.error_code == 0
    old = {**producer, "producer_epoch": 7}
    refused = broker.send(add_offsets_to_txn, version, **old, group_id="counts")
    expected = Code.PRODUCER_FENCED if version >= 2 else Code.INVALID_PRODUCER_EPOCH
    assert refused.error_code == expected


def stage(broker: FakeBroker, version: int, epoch: int = 0, **member: Any) -> dict[int, int]:
    response = broker.send(
        txn_offset_commit,
        version,
        **transactional(broker, epoch),
        group_id="counts",
        topics=[
            {
                "name": "words",
                "partitions": [
                    {"partition_index": i, "committed_offset": 5, "committed_metadata": None}
                    for i in (0, 9)
                ],
            }
        ],
        **member,
    )
    [topic] = response.topics
    return {found.partition_index: found.error_code for found in topic.partitions}


@in_versions(txn_offset_commit)
def test_txn_offset_commit(version: int) -> None:
    broker = FakeBroker()
    not_registered = Code.TRANSACTION_ABORTABLE if version >= 4 else Code.INVALID_TXN_STATE
    assert set(stage(broker, version).values()) == {not_registered}
    broker.send(add_offsets_to_txn, 4, **transactional(broker), group_id="counts")
    assert stage(broker, version) == {0: 0, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}
    assert set(stage(broker, version, epoch=7).values()) == {Code.INVALID_PRODUCER_EPOCH}
    if version >= 3:
        codes = stage(broker, version, generation_id=4, member_id="m")
        assert set(codes.values()) == {Code.ILLEGAL_GENERATION}
    fetched = fetch(broker, 7)
    assert fetched == {0: (-1, Code.UNSTABLE_OFFSET_COMMIT), 1: (-1, 0)}
    broker.send(end_txn, 4, **transactional(broker), committed=True)
    assert fetch(broker, 7) == {0: (5, 0), 1: (-1, 0)}


@in_versions(write_txn_markers)
def test_write_txn_markers(version: int) -> None:
    broker = FakeBroker()
    response = broker.send(
        write_txn_markers,
        version,
        markers=[
            {
                "producer_id": 5,
                "producer_epoch": 3,
                "transaction_result": False,
                "topics": [{"name": "words", "partition_indexes": [1, 9]}],
                "coordinator_epoch": 0,
            }
        ],
    )
    [topic] = response.markers[0].topics
    codes = {found.partition_index: found.error_code for found in topic.partitions}
    assert codes == {1: 0, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}
    assert broker.topics.partition("words", 1).markers() == [(5, 3, False)]


def commit(broker: FakeBroker, version: int, **fields: Any) -> dict[int, int]:
    response = broker.send(
        offset_commit,
        version,
        **{
            "group_id": "counts",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "retention_time": -1,
            "topics": [
                {
                    "name": "words",
                    "topic_id": WORDS_ID,
                    "partitions": [
                        {"partition_index": i, "committed_offset": 7, "committed_metadata": "m"}
                        for i in (0, 9)
                    ],
                }
            ],
            **fields,
        },
    )
    [topic] = response.topics
    return {found.partition_index: found.error_code for found in topic.partitions}


def fetch(broker: FakeBroker, version: int) -> dict[int, tuple[int, int]]:
    topic = {"name": "words", "topic_id": WORDS_ID, "partition_indexes": [0, 1]}
    response = broker.send(
        offset_fetch,
        version,
        group_id="counts",
        topics=[topic],
        groups=[{"group_id": "counts", "topics": [topic]}],
        require_stable=True,
    )
    found = response.groups[0] if version >= 8 else response
    [answer] = found.topics
    return {p.partition_index: (p.committed_offset, p.error_code) for p in answer.partitions}


@in_versions(offset_commit)
def test_offset_commit(version: int) -> None:
    broker = FakeBroker()
    assert commit(broker, version) == {0: 0, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}
    unknown = Code.UNKNOWN_TOPIC_ID if version >= 10 else Code.UNKNOWN_TOPIC_OR_PARTITION
    partition = {"partition_index": 0, "committed_offset": 7, "committed_metadata": None}
    topics = [{"name": "none", "topic_id": UUID(int=1), "partitions": [partition]}]
    assert commit(broker, version, topics=topics) == {0: unknown}
    no_group = Code.GROUP_ID_NOT_FOUND if version >= 9 else Code.ILLEGAL_GENERATION
    codes = commit(broker, version, group_id="none", generation_id_or_member_epoch=3, member_id="m")
    assert set(codes.values()) == {no_group}


@in_versions(offset_fetch)
def test_offset_fetch(version: int) -> None:
    broker = FakeBroker()
    assert fetch(broker, version) == {0: (-1, 0), 1: (-1, 0)}
    commit(broker, 9)
    assert fetch(broker, version) == {0: (7, 0), 1: (-1, 0)}


@pytest.mark.parametrize("version", offset_fetch.VERSIONS[1:])
def test_all_offsets_of_a_group_are_fetched_by_asking_for_null(version: int) -> None:
    broker = FakeBroker()
    commit(broker, 9)
    response = broker.send(
        offset_fetch,
        version,
        group_id="counts",
        topics=None,
        groups=[{"group_id": "counts", "topics": None}],
    )
    [topic] = (response.groups[0] if version >= 8 else response).topics
    assert [found.committed_offset for found in topic.partitions] == [7]
    if version >= 10:
        assert topic.topic_id == WORDS_ID


def test_a_topic_id_that_is_not_known_is_answered_for_each_partition() -> None:
    topic = {"topic_id": UUID(int=1), "partition_indexes": [0, 3]}
    response = FakeBroker().send(
        offset_fetch, 10, groups=[{"group_id": "counts", "topics": [topic]}]
    )
    codes = [found.error_code for found in response.groups[0].topics[0].partitions]
    assert codes == [Code.UNKNOWN_TOPIC_ID] * 2


@in_versions(join_group)
def test_join_group(version: int) -> None:
    broker = FakeBroker()
    first = broker.send(join_group, version, **_JOIN, member_id="")
    if version >= 4:
        assert first.error_code == Code.MEMBER_ID_REQUIRED
        assert first.member_id.startswith("client-")
        first = broker.send(join_group, version, **_JOIN, member_id=first.member_id)
    assert first.error_code == 0
    assert (first.generation_id, first.protocol_name) == (1, "range")
    assert first.leader == first.member_id == first.members[0].member_id
    refused = broker.send(join_group, version, **_JOIN, member_id="invented")
    assert refused.error_code == Code.UNKNOWN_MEMBER_ID
    assert refused.protocol_name == (None if version >= 7 else "")
    short = broker.send(join_group, version, **{**_JOIN, "session_timeout": 10}, member_id="")
    assert short.error_code == Code.INVALID_SESSION_TIMEOUT


@in_versions(sync_group)
def test_sync_group(version: int) -> None:
    broker = FakeBroker()
    member_id, generation = joined(broker)
    fields = {"group_id": "counts", "member_id": member_id, "assignments": []}
    again = broker.send(sync_group, version, **fields, generation_id=generation)
    assert (again.error_code, again.assignment) == (0, b"all")
    wrong = broker.send(sync_group, version, **fields, generation_id=generation + 1)
    assert wrong.error_code == Code.ILLEGAL_GENERATION
    if version >= 5:
        other = broker.send(
            sync_group, version, **fields, generation_id=generation, protocol_type="connect"
        )
        assert other.error_code == Code.INCONSISTENT_GROUP_PROTOCOL


@in_versions(heartbeat)
def test_heartbeat(version: int) -> None:
    broker = FakeBroker()
    member_id, generation = joined(broker)
    fields = {"group_id": "counts", "generation_id": generation}
    assert broker.send(heartbeat, version, **fields, member_id=member_id).error_code == 0
    unknown = broker.send(heartbeat, version, **fields, member_id="nobody")
    assert unknown.error_code == Code.UNKNOWN_MEMBER_ID


@in_versions(leave_group)
def test_leave_group(version: int) -> None:
    broker = FakeBroker()
    member_id, _ = joined(broker)

    def leave(who: str) -> int:
        response = broker.send(
            leave_group,
            version,
            group_id="counts",
            member_id=who,
            members=[{"member_id": who, "group_instance_id": None}],
        )
        if version < 3 or not response.members:
            return int(response.error_code)
        assert response.error_code == 0
        return int(response.members[0].error_code)

    assert leave("nobody") == Code.UNKNOWN_MEMBER_ID
    assert leave(member_id) == Code.NONE
    assert leave(member_id) == Code.UNKNOWN_MEMBER_ID


@in_versions(describe_groups)
def test_describe_groups(version: int) -> None:
    broker = FakeBroker()
    joined(broker)
    response = broker.send(
        describe_groups,
        version,
        groups=["counts", "none"],
        include_authorized_operations=False,
    )
    counts, none = response.groups
    assert (counts.error_code, counts.group_state) == (0, "Stable")
    assert (counts.protocol_type, counts.protocol_data) == ("consumer", "range")
    [member] = counts.members
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"all")
    assert none.group_state == "Dead"
    assert none.error_code == (Code.GROUP_ID_NOT_FOUND if version >= 6 else 0)


@in_versions(list_groups)
def test_list_groups(version: int) -> None:
    broker = FakeBroker()
    joined(broker)

    def found(**filters: list[str]) -> list[str]:
        return [g.group_id for g in broker.send(list_groups, version, **filters).groups]

    assert found() == ["counts"]
    if version >= 4:
        assert found(states_filter=["stable"]) == ["counts"]
        assert found(states_filter=["Empty"]) == []
    if version >= 5:
        assert found(types_filter=["Classic"]) == ["counts"]
        assert found(types_filter=["streams"]) == []


def test_a_log_that_can_not_be_written_to_is_no_coordinator() -> None:
    broker = FakeBroker()
    for topic in ("__consumer_offsets", "__transaction_state"):
        for log in broker.topics.get(topic).partitions:
            log.fail_after = 0
    assert set(commit(broker, 9).values()) == {Code.NOT_COORDINATOR}
    response = broker.send(init_producer_id, 5, transactional_id="a", transaction_timeout=1000)
    assert response.error_code == Code.NOT_COORDINATOR


def test_a_transactional_append_is_checked_against_the_transaction() -> None:
    broker = FakeBroker()
    add_partitions(broker, 3, [0])

    def check(partition: int = 0, epoch: int = 0, id_: str | None = "app", pid: int = 0) -> Code:
        return broker.coordinators.check_transactional_append(id_, pid, epoch, "words", partition)

    assert check() is Code.NONE
    assert check(partition=1) is Code.INVALID_TXN_STATE
    assert check(epoch=1) is Code.INVALID_PRODUCER_EPOCH
    assert check(pid=7) is Code.INVALID_PRODUCER_ID_MAPPING
    assert check(id_=None) is Code.INVALID_TXN_STATE
    broker.topics.partition("words", 0).fail_after = 0
    broker.send(end_txn, 4, **transactional(broker), committed=True)
    assert check() is Code.NOT_ENOUGH_REPLICAS
