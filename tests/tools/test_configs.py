"""Test kafka-configs: settings of topics, brokers, groups and loggers."""

from __future__ import annotations

from collections.abc import Callable

from tests.tools.shell import Pair

Same = Callable[[str], str]
CONFIGS = "kafka-configs --bootstrap-server {}"


def test_a_topic_s_settings_are_described_added_and_deleted(same: Same) -> None:
    same("kafka-topics --bootstrap-server {} --create --topic set --config retention.ms=1000")
    topic = "--entity-type topics --entity-name set"
    assert same(f"{CONFIGS} --describe {topic}") == (
        "Dynamic configs for topic set are:\n"
        "  retention.ms=1000 sensitive=false "
        "synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}\n"
    )
    everything = same(f"{CONFIGS} --describe --all {topic}")
    assert len(everything.splitlines()) == 37  # the heading, and all settings but one
    done = "Completed updating config for topic set.\n"
    add = "--add-config retention.ms=5000,cleanup.policy=[compact,delete]"
    assert same(f"{CONFIGS} --alter {topic} {add}") == done
    assert "cleanup.policy=compact,delete sensitive=false" in same(f"{CONFIGS} --describe {topic}")
    for _ in range(2):
        assert same(f"{CONFIGS} --alter {topic} --delete-config retention.ms") == done
    assert "retention.ms" not in same(f"{CONFIGS} --describe {topic}")
    for wrong, why in (
        ("no.such=1", "Unknown topic config name: no.such"),
        ("retention.ms=soon", "Not a number of type LONG"),
        ("cleanup.policy=never", "String must be one of: compact, delete"),
    ):
        assert why in same(f"{CONFIGS} --alter {topic} --add-config {wrong}")
    unknown = same(f"{CONFIGS} --describe --entity-type topics --entity-name nope")
    assert "The topic 'nope' doesn't exist" in unknown


def test_the_broker_s_settings_are_described_added_and_deleted(same: Same) -> None:
    one, default = "--entity-type brokers --entity-name 1", "--entity-type brokers --entity-default"
    done = "Completed updating config for broker 1.\n"
    assert same(f"{CONFIGS} --alter {one} --add-config message.max.bytes=2000000") == done
    same(f"{CONFIGS} --alter {default} --add-config message.max.bytes=3000000,log.retention.ms=9")
    assert same(f"{CONFIGS} --describe {one}") == (
        "Dynamic configs for broker 1 are:\n"
        "  message.max.bytes=2000000 sensitive=false "
        "synonyms={DYNAMIC_BROKER_CONFIG:message.max.bytes=2000000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=3000000, "
        "DEFAULT_CONFIG:message.max.bytes=1048588}\n"
    )
    assert "log.retention.ms=9" in same(f"{CONFIGS} --describe {default}")
    assert same(f"{CONFIGS} --alter {one} --delete-config message.max.bytes") == done
    same(f"{CONFIGS} --alter {default} --delete-config message.max.bytes,log.retention.ms")
    nothing = "Default configs for brokers in the cluster are:\n"
    assert same(f"{CONFIGS} --describe {default}") == nothing
    for wrong, why in (
        ("num.partitions=3", "Cannot update these configs dynamically: [num.partitions]"),
        ("message.max.bytes=-1", "Value must be at least 0"),
    ):
        assert why in same(f"{CONFIGS} --alter {one} --add-config {wrong}")


def test_a_group_s_settings_are_described_added_and_deleted(same: Same) -> None:
    group = "--entity-type groups --entity-name g"
    done = "Completed updating config for group g.\n"
    key = "consumer.session.timeout.ms"
    assert same(f"{CONFIGS} --alter {group} --add-config {key}=50000") == done
    described = same(f"{CONFIGS} --describe {group}")
    assert f"DYNAMIC_GROUP_CONFIG:{key}=50000, DEFAULT_CONFIG:group.{key}=45000" in described
    assert described == same(f"{CONFIGS} --describe --entity-type groups")
    assert "must be in the range" in same(f"{CONFIGS} --alter {group} --add-config {key}=1")
    assert same(f"{CONFIGS} --alter {group} --delete-config {key}") == done
    assert same(f"{CONFIGS} --describe --entity-type groups") == ""


def test_a_logger_s_level_is_set(pair: Pair, same: Same) -> None:
    loggers = "--entity-type broker-loggers --entity-name 1"
    done = "Completed updating config for broker-logger 1.\n"
    assert same(f"{CONFIGS} --alter {loggers} --add-config root=ERROR") == done
    for printed in pair.run(f"{CONFIGS} --describe {loggers}"):
        assert "  root=ERROR sensitive=false synonyms={}\n" in printed.text
    wrong = same(f"{CONFIGS} --alter {loggers} --add-config no.such=INFO")
    assert wrong == "Invalid broker logger(s): no.such\n"


def test_there_are_no_quotas_no_credentials_no_subscriptions_and_no_acls(same: Same) -> None:
    for kind in ("users", "clients", "ips", "client-metrics"):
        assert same(f"{CONFIGS} --describe --entity-type {kind}") == ""
    acls = same("kafka-acls --bootstrap-server {} --list")
    assert "No Authorizer is configured on the broker" in acls
