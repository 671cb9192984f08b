"""Test that each request of a command survives one answer of a broker that is not the right one.

On a cluster a leader, a coordinator or the controller may move between the look-up and the request.
The embedded broker answers so once, to each request in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from coordinator.embedded import EmbeddedBroker
from coordinator.faults import RequestFault
from examples import word_count
from streams.commands.cluster_clients import ClusterClients
from streams.commands.root import cli
from streams.common.topic_partitions import Partition
from streams.membership.application_group import fetch_group_description
from streams.membership.group_offsets import check_groups_listed, fetch_group_offsets
from streams.membership.transactions import (
    OpenProducer,
    abort_transaction,
    explain_incomplete_listing,
    list_open_producers,
    write_abort_marker,
)
from streams.processes.cluster import find_or_start_cluster
from streams.settings.config import StreamsConfig
from streams.spark.cuts.offset_client import OffsetClient
from streams.spark.source.broker_access import create_access

LINES = Partition("lines", 0)
GROUP, TRANSACTION = "readers", "writer"
LEADER_ERRORS = ("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "FENCED_LEADER_EPOCH")
COORDINATOR_ERRORS = (
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
)


class Call(NamedTuple):
    """Holds a request of a command, and the API that answers once with each of the errors."""

    api: str
    errors: tuple[str, ...]
    make: Callable[[ClusterClients], object]


def find_open(clients: ClusterClients) -> OpenProducer:
    (found,) = clients.ask_brokers(lambda connect: list_open_producers(connect, [LINES]))
    return found


CALLS = {
    "the end of a partition": Call(
        "ListOffsets", LEADER_ERRORS, lambda c: c.admin.fetch_latest_offsets([LINES])
    ),
    "known ends": Call(
        "ListOffsets",
        LEADER_ERRORS,
        lambda c: dict(c.admin.fetch_available_latest_offsets([LINES], 10.0))[LINES],
    ),
    "deletion of records": Call(
        "DeleteRecords", LEADER_ERRORS[:1], lambda c: c.admin.delete_records({LINES: 1})
    ),
    "creation of a topic": Call(
        "CreateTopics", ("NOT_CONTROLLER",), lambda c: c.admin.create_topics({"new": 1}, {}, 1)
    ),
    "settings of a topic": Call(
        "IncrementalAlterConfigs",
        ("NOT_CONTROLLER",),
        lambda c: c.admin.alter_topic_settings("lines", {"retention.ms": "-1"}),
    ),
    "deletion of a topic": Call(
        "DeleteTopics", ("NOT_CONTROLLER",), lambda c: c.cluster_admin.delete_topics(["other"])
    ),
    "offsets that are set": Call(
        "OffsetCommit",
        COORDINATOR_ERRORS,
        lambda c: c.cluster_admin.set_group_offsets(GROUP, {LINES: 1}),
    ),
    "deletion of a group": Call(
        "DeleteGroups", COORDINATOR_ERRORS, lambda c: c.cluster_admin.delete_group(GROUP)
    ),
    "committed offsets": Call(
        "OffsetFetch",
        COORDINATOR_ERRORS,
        lambda c: c.ask_brokers(lambda connect: fetch_group_offsets(connect, GROUP, [LINES])),
    ),
    "description of a group": Call(
        "DescribeGroups",
        COORDINATOR_ERRORS,
        lambda c: c.ask_brokers(lambda connect: fetch_group_description(connect, GROUP)),
    ),
    "coordinator of a group": Call(
        "FindCoordinator",
        COORDINATOR_ERRORS[1:2],
        lambda c: c.ask_brokers(lambda connect: check_groups_listed(connect, [GROUP])),
    ),
    "gaps of a listing": Call(
        "FindCoordinator",
        COORDINATOR_ERRORS[1:2],
        lambda c: c.ask_brokers(explain_incomplete_listing),
    ),
    "open transactions": Call("DescribeProducers", LEADER_ERRORS[:1], find_open),
    "abort of a transaction": Call(
        "InitProducerId",
        COORDINATOR_ERRORS,
        lambda c: c.ask_brokers(lambda connect: abort_transaction(connect, TRANSACTION)),
    ),
    "abort by a marker": Call(
        "WriteTxnMarkers",
        LEADER_ERRORS[:1],
        lambda c: c.ask_brokers(lambda connect: write_abort_marker(connect, find_open(c))),
    ),
}


@pytest.fixture
def embedded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(topics={"lines": 1, "other": 1}) as made:
        yield made


@pytest.fixture
def clients(embedded: EmbeddedBroker, tmp_path: Path) -> ClusterClients:
    config = StreamsConfig(bootstrap_servers=embedded.bootstrap_servers, state_dir=tmp_path)
    return ClusterClients(config, find_or_start_cluster(config))


@pytest.fixture
def writer(embedded: EmbeddedBroker) -> Producer:
    """Provide a producer with an open transaction, and records in the topic."""
    producer = Producer(
        {"bootstrap.servers": embedded.bootstrap_servers, "transactional.id": TRANSACTION}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce("lines", b"value")
    producer.flush(30)
    return producer


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("name", "error"), [(name, error) for name, call in CALLS.items() for error in call.errors]
)
@pytest.mark.usefixtures("writer")
def test_a_request_is_sent_again_where_another_broker_has_to_be_asked(
    embedded: EmbeddedBroker, clients: ClusterClients, name: str, error: str
) -> None:
    call = CALLS[name]
    rule = embedded.faults.add(RequestFault("error", api=call.api, error=error, times=1))
    call.make(clients)
    assert rule.struck == 1


@pytest.mark.parametrize(
    ("api", "error"),
    [
        *(("ListOffsets", error) for error in LEADER_ERRORS),
        *(("OffsetFetch", error) for error in COORDINATOR_ERRORS),
    ],
)
def test_a_cut_of_spark_asks_again(embedded: EmbeddedBroker, api: str, error: str) -> None:
    client = OffsetClient(create_access(embedded.bootstrap_servers, {}), 30_000)
    rule = embedded.faults.add(RequestFault("error", api=api, error=error, times=1))
    client.fetch_high_watermarks([LINES])
    client.fetch_committed_offsets(GROUP, [LINES])
    assert rule.struck == 1


@pytest.mark.parametrize("error", COORDINATOR_ERRORS)
def test_a_plan_asks_again(
    embedded: EmbeddedBroker, clients: ClusterClients, tmp_path: Path, error: str
) -> None:
    topology = word_count.app.topology()
    internal = {*topology.repartition_topics, topology.restore_topic_of("counts")}
    clients.admin.create_topics(dict.fromkeys(internal, 1), {}, 1)
    rule = embedded.faults.add(RequestFault("error", api="OffsetFetch", error=error, times=1))
    options = ("--bootstrap-servers", embedded.bootstrap_servers, "--state-dir", str(tmp_path))
    result = CliRunner().invoke(cli, ["plan", "examples.word_count:app", *options])
    assert rule.struck == 1, result.output
    assert error.lower() not in result.output.lower()
