"""Test that the leader alters, refuses or tells what is wrong with internal topics that exist."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from streams import App, serdes
from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError
from streams.membership.protocol import SubscriptionInfo
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.clients.replication import Replication
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

CHANGELOG, REPARTITION, LEDGER = "a-c-changelog", "a-c-repartition", "a-ledger"
INTERNAL = (CHANGELOG, REPARTITION, LEDGER)
COMMAND = "kafka-configs.sh --alter --entity-type topics --entity-name"


class Leader:
    """Leads the group of an application that counts through a repartition topic, with a ledger."""

    def __init__(self, *existing: str, **settings: Any) -> None:
        self.kafka = Kafka({"lines": 1} | dict.fromkeys(existing or INTERNAL, 1))
        self.admin = FakeAdmin(self.kafka, Script())
        app = App("a", ledger=True, **settings)
        stream = app.stream("lines", key=serdes.string, value=serdes.string)
        stream.group_by(lambda key, value: value, key=serdes.string).count(store="c")
        self.assignor = StreamsPartitionAssignor(
            app.topology(), app.config, self.admin, bootstrap_servers="localhost:4711"
        )

    def has(self, topic: str, **settings: str) -> None:
        """Let a topic have settings that somebody has altered."""
        self.kafka.topic_settings[topic] = {
            name.replace("_", "."): value for name, value in settings.items()
        }

    def start(self) -> None:
        """Assign the group's tasks."""
        member = SubscriptionInfo((), topology=self.assignor.declared)
        assert self.assignor.assign_group({"m": member})["m"].tasks

    def look_at_inputs(self) -> None:
        """Look whether inputs have changed, as the leader does from time to time."""
        assert not self.assignor.mend_topics_and_compare_inputs()


@pytest.fixture(autouse=True)
def keep_all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


@pytest.mark.parametrize(
    ("topic", "wrong", "right"),
    [
        (CHANGELOG, "cleanup.policy=delete", "compact"),
        (REPARTITION, "retention.bytes=1000", "-1"),
        (LEDGER, "retention.ms=604800000", "-1"),
    ],
)
def test_what_would_lose_records_is_altered_and_the_log_says_from_what(
    caplog: pytest.LogCaptureFixture, topic: str, wrong: str, right: str
) -> None:
    leader = Leader()
    name, _, value = wrong.partition("=")
    leader.has(topic, **{name: value, "segment.ms": "7"})
    leader.start()
    found = leader.admin.fetch_topic_settings([topic])[topic]
    assert found == {name: right, "segment.ms": "7"}
    assert f"{topic!r} would have lost records: altered {wrong} (now {right})" in caplog.text
    caplog.clear()
    leader.start()
    assert not caplog.text


@pytest.mark.parametrize("topic", INTERNAL)
def test_what_may_not_be_altered_is_refused_with_a_command_that_names_the_brokers(
    topic: str,
) -> None:
    leader = Leader()
    policy = "compact" if topic != CHANGELOG else "delete"
    leader.has(topic, cleanup_policy=policy)
    error = AuthorizationError("AlterConfigs", "topic", topic)
    leader.admin.script.fail("admin.alter_topic_settings", error)
    with pytest.raises(StreamsError) as raised:
        leader.start()
    assert f"{topic!r} has cleanup.policy={policy}, by which it would lose" in str(raised.value)
    assert f"not allowed to AlterConfigs topic {topic!r}" in str(raised.value)
    right = "compact" if topic == CHANGELOG else "delete"
    command = f"{COMMAND} {topic} --add-config 'cleanup.policy={right}'"
    assert str(raised.value).endswith(f"{command} --bootstrap-server localhost:4711")


def test_settings_that_may_not_be_read_are_told_and_keep_no_other_topic_from_being_checked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    leader = Leader()
    leader.has(REPARTITION, cleanup_policy="compact")
    error = AuthorizationError("DescribeConfigs", "topic", CHANGELOG)
    leader.admin.script.fail("admin.fetch_topic_settings", error)  # of all, and then of the first
    leader.admin.script.fail("admin.fetch_topic_settings", error, at=2)
    leader.start()
    warned = f"settings of internal topic {CHANGELOG!r} are not checked: not allowed to Describe"
    assert warned in caplog.text
    assert leader.kafka.topic_settings[REPARTITION] == {"cleanup.policy": "delete"}
    caplog.clear()
    leader.look_at_inputs()
    assert not caplog.text


@pytest.mark.parametrize("error", [OutcomeUnknown("no answer"), StreamsError("not now")])
def test_settings_that_can_not_be_read_are_told_once_and_read_with_the_inputs(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    leader = Leader()
    leader.has(CHANGELOG, cleanup_policy="delete")
    leader.admin.script.fail("admin.fetch_topic_settings", error)
    leader.start()
    leader.admin.script.fail("admin.fetch_topic_settings", error)
    leader.look_at_inputs()
    (told,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert f"{CHANGELOG!r}, {REPARTITION!r}, {LEDGER!r} can't be read now" in told.getMessage()
    assert leader.kafka.topic_settings[CHANGELOG] == {"cleanup.policy": "delete"}
    leader.look_at_inputs()
    assert leader.kafka.topic_settings[CHANGELOG] == {"cleanup.policy": "compact"}


def test_a_topic_that_another_has_created_meanwhile_is_checked_with_the_inputs() -> None:
    leader = Leader(LEDGER)
    leader.start()
    leader.has(CHANGELOG, cleanup_policy="delete")  # by the brokers' automatic creation, say
    leader.look_at_inputs()
    assert leader.kafka.topic_settings[CHANGELOG] == {"cleanup.policy": "compact"}


def test_a_topic_that_loses_records_and_may_not_be_altered_ends_the_leader_that_runs() -> None:
    leader = Leader(LEDGER)
    leader.start()
    leader.has(CHANGELOG, cleanup_policy="delete")
    error = AuthorizationError("AlterConfigs", "topic", CHANGELOG)
    leader.admin.script.fail("admin.alter_topic_settings", error)
    with pytest.raises(StreamsError, match="by which it would lose records"):
        leader.look_at_inputs()


@pytest.mark.parametrize(
    ("topic", "wrong", "right"),
    [(CHANGELOG, "cleanup.policy=delete", "compact"), (REPARTITION, "retention.ms=60000", "-1")],
)
def test_what_somebody_alters_while_the_application_runs_is_altered_back(
    caplog: pytest.LogCaptureFixture, topic: str, wrong: str, right: str
) -> None:
    leader = Leader()
    leader.start()
    leader.look_at_inputs()
    assert not caplog.text
    name, _, value = wrong.partition("=")
    leader.has(topic, **{name: value})
    before = leader.admin.script.calls.count("admin.fetch_topic_settings")
    leader.look_at_inputs()
    assert leader.admin.script.calls.count("admin.fetch_topic_settings") == before + 1
    assert leader.kafka.topic_settings[topic] == {name: right}
    assert f"{topic!r} would have lost records: altered {wrong} (now {right})" in caplog.text


def test_what_can_not_be_altered_back_is_told_once_with_the_command_and_ends_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    leader = Leader()
    leader.start()
    leader.has(CHANGELOG, cleanup_policy="delete")
    for _ in range(3):
        error = AuthorizationError("AlterConfigs", "topic", CHANGELOG)
        leader.admin.script.fail("admin.alter_topic_settings", error)
        leader.look_at_inputs()
    (told,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "somebody has altered it" in told.getMessage()
    assert f"{COMMAND} {CHANGELOG} --add-config 'cleanup.policy=compact'" in told.getMessage()


def test_what_is_unwise_is_told_once_for_all_topics_that_share_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    leader = Leader()
    for topic in INTERNAL:
        leader.has(topic, min_insync_replicas="1")
    counts = {CHANGELOG: 3, REPARTITION: 3, LEDGER: 1}
    leader.admin.replication = Replication(broker_count=3, replica_counts=counts)
    leader.start()
    leader.start()
    leader.look_at_inputs()
    in_sync, replicas = sorted(each.getMessage() for each in caplog.records)[::-1]
    assert in_sync.startswith(
        f"internal topics {CHANGELOG!r}, {REPARTITION!r} have each min.insync.replicas=1"
    )
    assert f"{COMMAND} {CHANGELOG} --add-config 'min.insync.replicas=2'" in in_sync
    assert replicas.startswith(f"internal topic {LEDGER!r} has replication factor 1 on 3 brokers")
    assert "kafka-reassign-partitions.sh" in replicas


def test_nothing_is_told_of_replicas_on_one_broker(caplog: pytest.LogCaptureFixture) -> None:
    leader = Leader()
    for topic in INTERNAL:
        leader.has(topic, min_insync_replicas="1", unclean_leader_election_enable="true")
    leader.start()
    assert not caplog.text


def test_replicas_that_can_not_be_looked_at_end_nobody() -> None:
    leader = Leader()
    leader.admin.script.fail("admin.fetch_replication", OutcomeUnknown("no answer"))
    leader.start()
