"""Test the names, types, values and sources that DescribeConfigs returns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    describe,
    values,
)
from tests.conformance.wire import Client

DEFAULT, STATIC_BROKER = 5, 4
# The cluster of the tests has this one set for all brokers, as every new cluster of Kafka has.
SET_BY_KAFKA = "min.insync.replicas"


def test_a_topic_has_every_setting_with_kafka_s_type_default_and_synonyms(
    client: Client, topic: str
) -> None:
    [result] = describe(client, (TOPIC, topic))
    assert result["error_code"] == 0
    found = {
        config["name"]: (
            config["config_type"],
            config["value"],
            config["config_source"],
            [(each["name"], each["value"], each["source"]) for each in config["synonyms"]],
        )
        for config in result["configs"]
        if config["name"] not in (SET_BY_KAFKA, "retention.ms")
    }

    def behind(name: str, value: str) -> tuple[str, int, list[tuple[str, str, int]]]:
        return value, DEFAULT, [(name, value, DEFAULT)]

    boolean, string, integer, long, double, a_list = 1, 2, 3, 5, 6, 7
    never = str(2**63 - 1)
    after = "log.message.timestamp.after.max.ms"
    before = "log.message.timestamp.before.max.ms"
    assert found == {
        "cleanup.policy": (a_list, *behind("log.cleanup.policy", "delete")),
        "compression.gzip.level": (integer, *behind("compression.gzip.level", "-1")),
        "compression.lz4.level": (integer, *behind("compression.lz4.level", "9")),
        "compression.type": (string, *behind("compression.type", "producer")),
        "compression.zstd.level": (integer, *behind("compression.zstd.level", "3")),
        "delete.retention.ms": (long, *behind("log.cleaner.delete.retention.ms", "86400000")),
        "errors.deadletterqueue.group.enable": (boolean, "false", DEFAULT, []),
        "file.delete.delay.ms": (long, *behind("log.segment.delete.delay.ms", "60000")),
        "flush.messages": (long, *behind("log.flush.interval.messages", never)),
        "flush.ms": (long, never, DEFAULT, []),
        "follower.replication.throttled.replicas": (a_list, "", DEFAULT, []),
        "index.interval.bytes": (integer, *behind("log.index.interval.bytes", "4096")),
        "leader.replication.throttled.replicas": (a_list, "", DEFAULT, []),
        "local.retention.bytes": (long, *behind("log.local.retention.bytes", "-2")),
        "local.retention.ms": (long, *behind("log.local.retention.ms", "-2")),
        "max.compaction.lag.ms": (long, *behind("log.cleaner.max.compaction.lag.ms", never)),
        "max.decompressed.message.bytes": (
            integer,
            *behind("max.decompressed.message.bytes", "2147483639"),
        ),
        "max.message.bytes": (integer, *behind("message.max.bytes", "1048588")),
        "message.timestamp.after.max.ms": (long, *behind(after, "3600000")),
        "message.timestamp.before.max.ms": (long, *behind(before, never)),
        "message.timestamp.type": (string, *behind("log.message.timestamp.type", "CreateTime")),
        "min.cleanable.dirty.ratio": (double, *behind("log.cleaner.min.cleanable.ratio", "0.5")),
        "min.compaction.lag.ms": (long, *behind("log.cleaner.min.compaction.lag.ms", "0")),
        "preallocate": (boolean, *behind("log.preallocate", "false")),
        "remote.copy.lag.bytes": (long, *behind("log.remote.copy.lag.bytes", "-1")),
        "remote.copy.lag.ms": (long, *behind("log.remote.copy.lag.ms", "0")),
        "remote.log.copy.disable": (boolean, "false", DEFAULT, []),
        "remote.log.delete.on.disable": (boolean, "false", DEFAULT, []),
        "remote.storage.enable": (boolean, "false", DEFAULT, []),
        "retention.bytes": (long, *behind("log.retention.bytes", "-1")),
        "segment.bytes": (integer, *behind("log.segment.bytes", "1073741824")),
        "segment.index.bytes": (integer, *behind("log.index.size.max.bytes", "10485760")),
        "segment.jitter.ms": (long, "0", DEFAULT, []),
        "segment.ms": (long, "604800000", DEFAULT, []),
        "unclean.leader.election.enable": (
            boolean,
            *behind("unclean.leader.election.enable", "false"),
        ),
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_settings_that_are_asked_for_by_name_and_no_others_are_told(
    client: Client, topic: str, version: int
) -> None:
    keys = ["retention.ms", "no.such.setting", "retention.ms", "preallocate"]
    [result] = describe(client, (TOPIC, topic), keys=keys, version=version)
    unset = {"name": "log.preallocate", "value": "false", "source": 5}
    is_set = {"name": "retention.ms", "value": "-1", "source": 1}
    plain = {"read_only": False, "is_sensitive": False}
    types = {"config_type": 1, "documentation": None} if version >= 3 else {}
    expected = [
        {"name": "preallocate", "value": "false", "config_source": 5, "synonyms": [unset]},
        {"name": "retention.ms", "value": "-1", "config_source": 1, "synonyms": [is_set]},
    ]
    expected = [{**each, **plain, **types} for each in expected]
    if version >= 3:
        expected[1]["config_type"] = 5
    assert result == {
        "error_code": 0,
        "error_message": "",
        "resource_type": TOPIC,
        "resource_name": topic,
        "configs": expected,
    }


def test_an_empty_list_of_names_means_all_and_synonyms_come_only_if_asked_for(
    client: Client, topic: str
) -> None:
    [result] = describe(client, (TOPIC, topic), keys=[], synonyms=False)
    assert len(result["configs"]) == 37
    assert not any(config["synonyms"] for config in result["configs"])


def test_an_internal_setting_is_described_for_a_topic_that_has_it(
    client: Client, unique: Callable[[str], str]
) -> None:
    name, key = unique("topic"), "internal.segment.bytes"
    create_topic(client, name, configs={key: "1000"})
    [result] = describe(client, (TOPIC, name), keys=[key, "segment.bytes"])
    assert {each["name"]: (each["value"], each["synonyms"]) for each in result["configs"]} == {
        key: ("1000", [{"name": key, "value": "1000", "source": 1}]),
        "segment.bytes": (
            "1073741824",
            [{"name": "log.segment.bytes", "value": "1073741824", "source": DEFAULT}],
        ),
    }


MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
CHARACTERS = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "nope", Code.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (TOPIC, "__cluster_metadata", Code.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            TOPIC,
            "a b",
            Code.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: 'a b' {CHARACTERS}",
        ),
        (
            TOPIC,
            "",
            Code.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            BROKER,
            "2",
            Code.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (BROKER, "abc", Code.INVALID_REQUEST, "Broker id must be an integer, but it is: abc"),
        (BROKER_LOGGER, "", Code.INVALID_REQUEST, "Broker id must not be empty"),
        (
            BROKER_LOGGER,
            "2",
            Code.INVALID_REQUEST,
            "Unexpected broker id, expected 1 but received 2",
        ),
        (BROKER_LOGGER, "x", Code.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (GROUP, "", Code.INVALID_REQUEST, "Group name must not be empty"),
        (
            CLIENT_METRICS,
            "",
            Code.INVALID_REQUEST,
            "Client metrics subscription name must not be empty",
        ),
        (0, "x", Code.INVALID_REQUEST, MALFORMED),
        (64, "x", Code.INVALID_REQUEST, MALFORMED),
    ],
)
def test_what_can_t_be_described_is_refused_with_the_reason(
    client: Client, kind: int, name: str, code: Code, message: str
) -> None:
    assert describe(client, (kind, name)) == [
        {
            "error_code": code,
            "error_message": message,
            "resource_type": kind,
            "resource_name": name,
            "configs": [],
        }
    ]


def test_each_resource_is_answered_for_itself(client: Client, topic: str) -> None:
    results = describe(
        client, (TOPIC, topic), (TOPIC, "nope"), (TOPIC, topic), keys=["preallocate"]
    )
    found = sorted((each["error_code"], len(each["configs"])) for each in results)
    assert found == [(0, 1), (0, 1), (Code.UNKNOWN_TOPIC_OR_PARTITION, 0)]


def test_the_broker_s_settings_say_which_may_be_altered(client: Client) -> None:
    [result] = describe(
        client,
        (BROKER, "1"),
        keys=["message.max.bytes", "num.partitions", "log.cleanup.policy", "group.max.size"],
    )
    found = [
        (each["name"], each["value"], each["config_source"], each["read_only"], each["config_type"])
        for each in result["configs"]
    ]
    assert found == [
        ("group.max.size", "2147483647", DEFAULT, True, 3),
        ("log.cleanup.policy", "delete", DEFAULT, False, 7),
        ("message.max.bytes", "1048588", DEFAULT, False, 3),
        ("num.partitions", "1", DEFAULT, True, 3),
    ]


def test_a_setting_that_the_broker_was_started_with_lies_over_the_default(client: Client) -> None:
    name = "group.min.session.timeout.ms"
    assert values(client, BROKER, "1", name)[name] == (
        "500",
        STATIC_BROKER,
        [(name, "500", STATIC_BROKER), (name, "6000", DEFAULT)],
    )


def test_what_is_internal_to_the_broker_is_not_told(client: Client) -> None:
    assert values(client, BROKER, "1", "group.consumer.regex.refresh.interval.ms") == {}


def test_a_group_has_settings_though_there_is_no_such_group(
    client: Client, group: str, broker: Broker
) -> None:
    found = values(client, GROUP, group)
    session, heartbeat, interval = "session.timeout.ms", "heartbeat.interval.ms", "assignment."
    kinds = ("consumer", "share", "streams")
    expected = {
        **{f"{kind}.{session}": "45000" for kind in kinds},
        **{f"{kind}.{heartbeat}": "5000" for kind in kinds},
        **{f"{kind}.{interval}interval.ms": "1000" for kind in kinds},
        "share.delivery.count.limit": "5",
        "share.partition.max.record.locks": "2000",
        "share.record.lock.duration.ms": "30000",
        "streams.initial.rebalance.delay.ms": "3000",
        "streams.num.standby.replicas": "0",
    }
    behind = {
        name: (value, DEFAULT, [(f"group.{name}", value, DEFAULT)])
        for name, value in expected.items()
    }
    own = {
        "share.auto.offset.reset": "latest",
        "share.isolation.level": "read_uncommitted",
        "share.renew.acknowledge.enable": "true",
        "errors.deadletterqueue.copy.record.enable": "false",
        "errors.deadletterqueue.topic.name": "",
    }
    behind |= {name: (value, DEFAULT, [(name, value, DEFAULT)]) for name, value in own.items()}
    for name, value, setting in (
        ("streams.assignor.name", "sticky", "group.streams.assignors"),
        ("streams.rack.aware.assignment.tags", "", "group.streams.rack.aware.assignment.tags"),
    ):
        behind[name] = (value, DEFAULT, [(setting, value, DEFAULT)])
    # The tests set these, so that no test has to wait for them; the first one to the embedded
    # broker's own default.
    for name, kafka_default in (
        ("consumer.assignment.interval.ms", "1000"),
        ("streams.assignment.interval.ms", "1000"),
        ("streams.initial.rebalance.delay.ms", "3000"),
    ):
        setting = f"group.{name}"
        told = [(setting, "0", STATIC_BROKER), (setting, kafka_default, DEFAULT)]
        if broker.kind == "kafka" or name.startswith("streams."):
            behind[name] = ("0", STATIC_BROKER, told)
        else:
            behind[name] = ("0", DEFAULT, [(setting, "0", DEFAULT)])
    assert found == behind


def test_a_subscription_to_client_metrics_has_defaults(client: Client) -> None:
    assert values(client, CLIENT_METRICS, "anything") == {
        "interval.ms": ("300000", DEFAULT, []),
        "match": ("", DEFAULT, []),
        "metrics": ("", DEFAULT, []),
    }


def test_the_root_logger_has_a_level(client: Client) -> None:
    [result] = describe(client, (BROKER_LOGGER, "1"), keys=["root"])
    [root] = result["configs"]
    assert (root["name"], root["config_source"], root["config_type"]) == ("root", 6, 0)
