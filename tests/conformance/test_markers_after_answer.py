"""Test that the markers of a transaction stand before anybody can act on the answer to EndTxn.

Kafka may refuse the producer's next transaction as concurrent for a moment: this is a promise of
the embedded broker alone.
"""

from __future__ import annotations

from pathlib import Path

from coordinator import EmbeddedBroker
from coordinator.errors import Code
from tests.conformance.calls import READ_COMMITTED
from tests.conformance.wire import Api, Client

PARTITIONS = 20
TRANSACTIONS = 100


def test_whoever_has_the_answer_finds_the_markers_written(tmp_path: Path) -> None:
    """Check on a real event loop that the next transaction is never refused as concurrent."""
    topics = [{"name": "words", "partitions": list(range(PARTITIONS))}]
    with (
        EmbeddedBroker(tmp_path, topics={"words": PARTITIONS}) as broker,
        Client(broker.bootstrap_servers) as client,
        Client(broker.bootstrap_servers) as other,
    ):
        owner = client.send(
            Api.INIT_PRODUCER_ID, 4, transactional_id="app", transaction_timeout=60_000
        )
        identity = {"producer_id": owner.producer_id, "producer_epoch": owner.producer_epoch}
        last = {"partition_index": PARTITIONS - 1, "timestamp": -1}
        for number in range(TRANSACTIONS):
            added = client.send(
                Api.ADD_PARTITIONS_TO_TXN,
                3,
                v3_and_below_transactional_id="app",
                v3_and_below_topics=topics,
                **{f"v3_and_below_{name}": value for name, value in identity.items()},
            )
            [result] = added.results_by_topic_v3_and_below
            codes = {each.partition_error_code for each in result.results_by_partition}
            assert codes == {Code.NONE}, number
            ended = client.send(Api.END_TXN, 3, transactional_id="app", **identity, committed=True)
            assert ended.error_code == Code.NONE
            ends = other.send(
                Api.LIST_OFFSETS,
                2,
                replica_id=-1,
                isolation_level=READ_COMMITTED,
                topics=[{"name": "words", "partitions": [last]}],
            )
            assert ends.topics[0].partitions[0].offset == number + 1
