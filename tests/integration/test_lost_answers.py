"""Test that the output is exact whatever the brokers do to the calls of a transaction.

Answers are lost after the call took effect, calls are lost, connections are cut, calls are refused.

On the embedded broker, which can be told to do so (docs/faults.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coordinator import EmbeddedBroker
from coordinator.faults import RequestFault
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S

pytestmark = IN_CI

UNKNOWN, MIGRATED = "outcomes_unknown", "tasks_migrated"
# What is done to which call, and how the thread recovers; None: librdkafka has tried again.
FAULTS = [
    ("lose-answer", "EndTxn", "NONE", UNKNOWN),
    ("lose-request", "EndTxn", "NONE", UNKNOWN),
    ("lose-answer", "TxnOffsetCommit", "NONE", UNKNOWN),
    ("error", "TxnOffsetCommit", "ILLEGAL_GENERATION", MIGRATED),
    ("lose-answer", "AddPartitionsToTxn", "NONE", UNKNOWN),
    ("lose-answer", "Produce", "NONE", UNKNOWN),
    ("error", "Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", MIGRATED),
    ("cut-after", "EndTxn", "NONE", None),
    ("error", "EndTxn", "NOT_COORDINATOR", None),
    ("error", "EndTxn", "INVALID_PRODUCER_EPOCH", MIGRATED),
    ("error", "TxnOffsetCommit", "FENCED_INSTANCE_ID", MIGRATED),
    ("lose-answer", "AddOffsetsToTxn", "NONE", UNKNOWN),
    # librdkafka takes it for abortable and drops the records before it names it: a new producer.
    ("error", "AddPartitionsToTxn", "INVALID_PRODUCER_ID_MAPPING", UNKNOWN),
    ("error", "AddPartitionsToTxn", "TRANSACTION_ABORTABLE", UNKNOWN),
    ("cut-after", "Produce", "NONE", None),
    ("error", "Produce", "INVALID_PRODUCER_EPOCH", MIGRATED),
]


@pytest.fixture
def broker_with_faults() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "guarantee",
    [
        "exactly_once_v2",
        "exactly_once",
    ],
)
def test_no_record_is_lost_or_doubled_by_what_happens_to_a_call_of_a_transaction(
    broker_with_faults: EmbeddedBroker,
    unique: Callable[[str], str],
    tmp_path: Path,
    guarantee: str,
) -> None:
    broker = broker_with_faults
    topics = Topics(broker.bootstrap_servers, unique("faulty"))
    app = build(
        topics.application,
        topics.source,
        topics.target,
        kind="count",
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        processing_guarantee=guarantee,
        commit_interval_ms=20,
        request_timeout_ms=1_000,
        transaction_timeout_ms=1_500,  # librdkafka waits as long for some of the answers
        heartbeat_interval_ms=200,
    )
    wrong = []
    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        for action, api, error, recovery in FAULTS:
            before = running.metrics()
            client = f"{topics.application}-*"
            fault = RequestFault(action, api=api, error=error, client_id=client, times=1)
            rule = broker.faults.add(fault)
            while not rule.struck:  # the test's own time-out ends what never comes
                topics.load(60)
                running.wait_for("RUNNING", HANG_LIMIT_S)
            topics.wait_for_counts(topics.loaded)
            assert topics.counts() == topics.truth, fault
            after = running.metrics()
            met = [kind for kind in (UNKNOWN, MIGRATED) if after[kind] > before[kind]]
            if met != ([] if recovery is None else [recovery]):
                wrong.append((action, api, error, met, recovery))
        assert running.state == "RUNNING"
    assert wrong == []
