"""Test the codes that clients get while a shard is loading, or led by another broker.

The broker's other shards go on as ever.
"""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_groups,
    describe_transactions,
    end_txn,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_transactions,
    sync_group,
    txn_offset_commit,
)
from coordinator.coordinators import GROUP_TOPIC, TRANSACTION_TOPIC
from coordinator.errors import Code
from coordinator.shard.placement import partition_for
from tests.answers import codes
from tests.unit.coordinator.api.apis import JOIN, FakeBroker, commit, fetch

PRODUCER: dict[str, Any] = {"transactional_id": "app", "producer_id": 0, "producer_epoch": 0}
OFFSET: dict[str, Any] = {
    "partition_index": 0,
    "committed_offset": 5,
    "committed_metadata": "",
}


def transaction_codes(broker: FakeBroker) -> set[int]:
    """Return the codes of all requests about the transactional id `app`."""
    partitions = [{"name": "words", "partitions": [0]}]
    asked = [
        broker.send(init_producer_id, 5, transactional_id="app", transaction_timeout=1000),
        broker.send(
            add_partitions_to_txn,
            3,
            v3_and_below_transactional_id="app",
            v3_and_below_producer_id=0,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=partitions,
        ),
        broker.send(add_offsets_to_txn, 4, **PRODUCER, group_id="counts"),
        broker.send(end_txn, 5, **PRODUCER, committed=True),
        broker.send(describe_transactions, 0, transactional_ids=["app"]),
        broker.send(
            txn_offset_commit,
            5,
            **PRODUCER,
            group_id="counts",
            topics=[{"name": "words", "partitions": [OFFSET]}],
        ),
    ]
    return {code for answer in asked for code in codes(answer)}


def group_codes(broker: FakeBroker) -> set[int]:
    """Return the codes of all requests about the group `counts`, except for a heartbeat."""
    member: dict[str, Any] = {"group_id": "counts", "member_id": "m"}
    protocol = {"protocol_type": "consumer", "protocol_name": "range"}
    asked = [
        broker.send(join_group, 9, **JOIN, member_id="m"),
        broker.send(sync_group, 5, **member, **protocol, generation_id=1, assignments=()),
        broker.send(leave_group, 5, group_id="counts", members=[{"member_id": "m"}]),
        broker.send(describe_groups, 6, groups=["counts"], include_authorized_operations=True),
    ]
    assert asked[0].member_id == "", "whose it is, is not known"
    return {commit(broker, 9)[0], *(code for answer in asked for code in codes(answer))}


def heartbeat_code(broker: FakeBroker) -> int:
    member = {"group_id": "counts", "member_id": "m"}
    code: int = broker.send(heartbeat, 4, **member, generation_id=1).error_code
    return code


@pytest.mark.parametrize("loading", [True, False], ids=["loading", "resigned"])
def test_a_transaction_shard_that_is_not_there_says_so_and_its_transaction_outlives_it(
    loading: bool,
) -> None:
    broker = FakeBroker()
    broker.send(init_producer_id, 5, transactional_id="app", transaction_timeout=1000)
    index = partition_for("app", 2)
    broker.coordinators.resign_shard(TRANSACTION_TOPIC, index)
    expected = Code.NOT_COORDINATOR
    if loading:
        load_slice = broker.coordinators.transactions.elect_shard(index)
        expected = Code.COORDINATOR_LOAD_IN_PROGRESS
        filters: dict[str, Any] = {"state_filters": (), "producer_id_filters": ()}
        assert broker.send(list_transactions, 0, **filters).error_code == expected
    assert transaction_codes(broker) == {expected}
    other = next(name for name in "abcdef" if partition_for(name, 2) != index)
    init = broker.send(init_producer_id, 5, transactional_id=other, transaction_timeout=1000)
    assert init.error_code == Code.NONE
    if loading:
        assert load_slice()
    else:
        broker.coordinators.elect_shard(TRANSACTION_TOPIC, index)
    again = broker.send(init_producer_id, 5, transactional_id="app", transaction_timeout=1000)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, 0, 1)


@pytest.mark.parametrize("loading", [True, False], ids=["loading", "resigned"])
def test_a_group_shard_that_is_not_there_says_so_and_its_offsets_outlive_it(loading: bool) -> None:
    broker = FakeBroker()
    assert commit(broker, 9)[0] == Code.NONE
    index = broker.coordinators.groups.partition_of("counts")
    broker.coordinators.resign_shard(GROUP_TOPIC, index)
    expected = Code.NOT_COORDINATOR
    if loading:
        load_slice = broker.coordinators.groups.elect_shard(index)
        expected = Code.COORDINATOR_LOAD_IN_PROGRESS
        assert broker.send(list_groups, 4).error_code == expected
    assert group_codes(broker) == {expected}
    # While it loads, no session times out: Kafka answers heartbeats with NONE.
    assert heartbeat_code(broker) == (Code.NONE if loading else expected)
    if loading:
        assert load_slice()
    else:
        broker.coordinators.elect_shard(GROUP_TOPIC, index)
    assert heartbeat_code(broker) == Code.UNKNOWN_MEMBER_ID
    assert fetch(broker, 7)[0] == (7, Code.NONE)
