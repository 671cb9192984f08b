"""Test which settings of internal topics would lose records, and which are unwise."""

from __future__ import annotations

import pytest

from streams.runtime.assigning.internal_topic_settings import (
    find_loss_preventing_changes,
    find_unwise_settings,
    format_alter_command,
)
from streams.runtime.assigning.internal_topics import LEDGER_SETTINGS, REPARTITION_SETTINGS
from streams.runtime.clients.replication import Replication

COMPACT = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
WINDOWS = COMPACT | {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
QUEUE = COMPACT | {"cleanup.policy": "delete", "retention.ms": "-1"}
VERSIONS = COMPACT | {"min.compaction.lag.ms": "500"}
DECLARED = WINDOWS | {"retention.ms": "50"}


@pytest.mark.parametrize(
    ("wanted", "found", "changes"),
    [
        (COMPACT, {}, {}),
        (COMPACT, {"retention.ms": "5"}, {}),
        (COMPACT, {"cleanup.policy": "delete"}, {"cleanup.policy": "compact"}),
        (COMPACT, {"cleanup.policy": "compact,delete"}, {"cleanup.policy": "compact"}),
        (COMPACT, {"message.timestamp.type": "LogAppendTime"}, COMPACT),
        (WINDOWS, {"retention.ms": "5"}, {"retention.ms": "-1"}),
        (WINDOWS, {"retention.bytes": "9"}, {"retention.bytes": "-1"}),
        (WINDOWS, {"cleanup.policy": "compact", "retention.ms": "5"}, {}),
        (WINDOWS, {"cleanup.policy": "compact, delete"}, {}),
        (QUEUE, {"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}),
        (QUEUE, {"retention.ms": "604800000"}, {"retention.ms": "-1"}),
        (VERSIONS, {"min.compaction.lag.ms": "499"}, {"min.compaction.lag.ms": "500"}),
        (VERSIONS, {"min.compaction.lag.ms": "501"}, {}),
        (REPARTITION_SETTINGS, {"retention.bytes": "9"}, {"retention.bytes": "-1"}),
        (LEDGER_SETTINGS, {"retention.ms": "604800000"}, {"retention.ms": "-1"}),
        (LEDGER_SETTINGS, {"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}),
        (
            QUEUE,
            {"cleanup.policy": "compact", "retention.ms": "604800000"},
            {"cleanup.policy": "delete", "retention.ms": "-1"},
        ),
        (DECLARED, {"retention.ms": "49"}, {"retention.ms": "50"}),
        (DECLARED, {"retention.ms": "50"}, {}),
        (DECLARED, {"retention.ms": "51"}, {}),
    ],
)
def test_what_would_lose_records_is_set_to_what_the_topic_is_created_with(
    wanted: dict[str, str], found: dict[str, str], changes: dict[str, str]
) -> None:
    expected = {name: value for name, value in changes.items() if found.get(name) != value}
    if "message.timestamp.type" in found:
        expected = {"message.timestamp.type": "CreateTime"}
    assert find_loss_preventing_changes(wanted, {**wanted, **found}) == expected


@pytest.mark.parametrize(
    ("replicas", "brokers", "asked", "said"),
    [
        (1, 1, -1, []),
        (1, 2, -1, []),
        (1, 3, -1, ["replication factor 1 on 3 brokers"]),
        (2, 4, -1, ["replication factor 2 on 4 brokers"]),
        (3, 3, -1, []),
        (2, 3, 2, []),
        (1, 3, 2, ["replication factor 1, and replication_factor asks for 2"]),
        (2, 2, 3, []),
    ],
)
def test_few_replicas_are_unwise_where_there_are_brokers_for_more(
    replicas: int, brokers: int, asked: int, said: list[str]
) -> None:
    replication = Replication(brokers, {"t": replicas})
    found = find_unwise_settings("t", {}, replication, replication_factor=asked, cut_retention_ms=0)
    assert [each.description.split(", so")[0] for each in found] == said


@pytest.mark.parametrize(
    ("replicas", "found", "changes"),
    [
        (3, {"min.insync.replicas": "1"}, {"min.insync.replicas": "2"}),
        (3, {"min.insync.replicas": "2"}, {}),
        (2, {"min.insync.replicas": "1"}, {}),
        (
            2,
            {"unclean.leader.election.enable": "true"},
            {"unclean.leader.election.enable": "false"},
        ),
        (2, {"unclean.leader.election.enable": "false"}, {}),
        (
            1,
            {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
            {},
        ),
        (1, {"min.compaction.lag.ms": "9"}, {"min.compaction.lag.ms": "10"}),
        (1, {"min.compaction.lag.ms": "10"}, {}),
    ],
)
def test_settings_that_lose_records_with_a_broker_or_a_cut_are_unwise(
    replicas: int, found: dict[str, str], changes: dict[str, str]
) -> None:
    replication = Replication(replicas, {"t": replicas})
    unwise = find_unwise_settings(
        "t",
        {"min.compaction.lag.ms": "10", **found},
        replication,
        replication_factor=-1,
        cut_retention_ms=10,
    )
    assert [each.changes for each in unwise] == ([changes] if changes else [])


def test_the_command_of_an_administrator_names_its_file_where_the_cluster_is_secured() -> None:
    changes = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
    command = format_alter_command("t", changes, "kafka:9092")
    assert command == (
        "kafka-configs.sh --alter --entity-type topics --entity-name t --add-config "
        "'cleanup.policy=[compact,delete],retention.ms=-1' --bootstrap-server kafka:9092"
    )
    secured = format_alter_command("t", changes, "kafka:9092", is_secured=True)
    assert secured == f"{command} --command-config admin.properties"
