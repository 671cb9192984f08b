"""Test each operation of IncrementalAlterConfigs, its refusals, and that settings are in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.calls import eventually, produce
from tests.conformance.configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    DELETE,
    DONE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    alter_all,
    value,
    values,
)
from tests.conformance.wire import Client

RETENTION, POLICY = "retention.ms", "cleanup.policy"
MAX_BYTES = "message.max.bytes"


@pytest.fixture
def broker_settings(client: Client) -> Iterator[None]:
    """Unset, at the end of a case, what it has set for the broker."""
    yield
    for name in ("1", ""):
        operations = ((MAX_BYTES, DELETE, None), ("log.cleanup.policy", DELETE, None))
        assert alter(client, BROKER, name, *operations) == DONE
    assert eventually(lambda: value(client, BROKER, "1", MAX_BYTES), "1048588") == "1048588"


@pytest.mark.parametrize("version", [0, 1])
def test_set_and_delete_a_topic_s_setting(client: Client, topic: str, version: int) -> None:
    assert alter(client, TOPIC, topic, (RETENTION, SET, "55"), version=version) == DONE
    own = ("55", 1, [(RETENTION, "55", 1)])
    assert eventually(lambda: values(client, TOPIC, topic, RETENTION), {RETENTION: own}) == {
        RETENTION: own
    }
    for _ in range(2):  # what isn't set can be deleted
        assert alter(client, TOPIC, topic, (RETENTION, DELETE, None), version=version) == DONE
    unset = "604800000"
    assert eventually(lambda: value(client, TOPIC, topic, RETENTION), unset) == unset


def test_append_and_subtract_begin_at_the_value_that_holds(client: Client, topic: str) -> None:
    def policy_is(expected: str) -> bool:
        return bool(eventually(lambda: value(client, TOPIC, topic, POLICY) == expected, True))

    assert alter(client, TOPIC, topic, (POLICY, APPEND, "compact")) == DONE
    assert policy_is("delete,compact")
    assert alter(client, TOPIC, topic, (POLICY, APPEND, "compact")) == DONE
    assert policy_is("delete,compact")
    assert alter(client, TOPIC, topic, (POLICY, SUBTRACT, "delete,foo")) == DONE
    assert policy_is("compact")
    assert alter(client, TOPIC, topic, (POLICY, SUBTRACT, "compact")) == DONE
    assert policy_is("")


def test_validate_only_changes_nothing(client: Client, topic: str) -> None:
    assert alter(client, TOPIC, topic, (RETENTION, SET, "66"), validate_only=True) == DONE
    wrong = alter(client, TOPIC, topic, (RETENTION, SET, "x"), validate_only=True)
    assert wrong.code == Code.INVALID_CONFIG
    assert value(client, TOPIC, topic, RETENTION) == "-1"


NULL = "Null value not supported for : "
NUMBER = "Invalid value x for configuration retention.ms: Not a number of type LONG"
REPLICAS = (
    "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the "
    "following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


@pytest.mark.parametrize(
    ("key", "operation", "given", "code", "message"),
    [
        (RETENTION, SET, None, Code.INVALID_REQUEST, NULL + RETENTION),
        (POLICY, APPEND, None, Code.INVALID_REQUEST, NULL + POLICY),
        (RETENTION, SET, "x", Code.INVALID_CONFIG, NUMBER),
        ("no.such", SET, "1", Code.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (
            RETENTION,
            APPEND,
            "1",
            Code.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            RETENTION,
            SUBTRACT,
            "1",
            Code.INVALID_CONFIG,
            "Can't SUBTRACT to key retention.ms because its type is not LIST.",
        ),
        (
            POLICY,
            APPEND,
            "foo",
            Code.INVALID_CONFIG,
            (
                "Invalid value foo for configuration cleanup.policy: "
                "String must be one of: compact, delete"
            ),
        ),
        (
            POLICY,
            SET,
            "compact,",
            Code.INVALID_CONFIG,
            "Configuration 'cleanup.policy' values must not be empty.",
        ),
        (
            "leader.replication.throttled.replicas",
            SET,
            "0:1,1",
            Code.INVALID_CONFIG,
            "Invalid value [0:1, 1] for configuration leader.replication.throttled.replicas: "
            + REPLICAS,
        ),
        (
            "compression.gzip.level",
            SET,
            "0",
            Code.INVALID_CONFIG,
            (
                "Invalid value 0 for configuration compression.gzip.level: "
                "Value must be between 1 and 9 or equal to -1"
            ),
        ),
        (
            "compression.lz4.level",
            SET,
            "18",
            Code.INVALID_CONFIG,
            (
                "Invalid value 18 for configuration compression.lz4.level: "
                "Value must be no more than 17"
            ),
        ),
        (
            "min.cleanable.dirty.ratio",
            SET,
            "2",
            Code.INVALID_CONFIG,
            (
                "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: "
                "Value must be no more than 1"
            ),
        ),
        (
            "max.message.bytes",
            SET,
            "99999999999",
            Code.INVALID_CONFIG,
            (
                "Invalid value 99999999999 for configuration max.message.bytes: "
                "Not a number of type INT"
            ),
        ),
        (
            "preallocate",
            SET,
            "maybe",
            Code.INVALID_CONFIG,
            (
                "Invalid value maybe for configuration preallocate: "
                "Expected value to be either true or false"
            ),
        ),
        (
            "remote.storage.enable",
            SET,
            "true",
            Code.INVALID_CONFIG,
            (
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            ),
        ),
    ],
)
def test_an_operation_that_can_t_be_is_refused_with_the_reason(
    client: Client,
    topic: str,
    key: str,
    operation: int,
    given: str | None,
    code: Code,
    message: str,
) -> None:
    assert alter(client, TOPIC, topic, (key, operation, given)) == (code, message)


def test_one_bad_operation_keeps_the_others_of_its_resource_from_being_done(
    client: Client, topic: str
) -> None:
    refused = alter(client, TOPIC, topic, (RETENTION, SET, "5"), ("no.such", SET, "2"))
    assert refused.code == Code.INVALID_CONFIG
    assert alter(client, TOPIC, topic, (RETENTION, SET, "5"), (RETENTION, SET, "6")) == (
        Code.INVALID_REQUEST,
        "Error due to duplicate config keys",
    )
    assert value(client, TOPIC, topic, RETENTION) == "-1"


def test_each_resource_is_answered_for_itself(client: Client, topic: str, other_topic: str) -> None:
    five = [(RETENTION, SET, "5")]
    assert alter_all(client, (TOPIC, topic, five), (TOPIC, "nope", five)) == [
        DONE,
        (Code.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
    ]
    twice = (Code.INVALID_REQUEST, "Each resource must appear at most once.")
    six = [(RETENTION, SET, "6")]
    outcomes = alter_all(
        client, (TOPIC, topic, six), (TOPIC, topic, six), (TOPIC, other_topic, six)
    )
    assert outcomes == [twice, twice, DONE]
    assert eventually(lambda: value(client, TOPIC, other_topic, RETENTION), "6") == "6"
    assert value(client, TOPIC, topic, RETENTION) == "5"


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "", Code.INVALID_REQUEST, "Default topic resources are not allowed."),
        (
            TOPIC,
            "__cluster_metadata",
            Code.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic '__cluster_metadata' does not exist.",
        ),
        (GROUP, "", Code.INVALID_REQUEST, "Default group resources are not allowed."),
        (
            BROKER,
            "2",
            Code.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (BROKER, "x", Code.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        (
            BROKER_LOGGER,
            "2",
            Code.INVALID_REQUEST,
            "Unexpected node id. Expected 1, but received 2",
        ),
        (BROKER_LOGGER, "", Code.INVALID_REQUEST, "Node id must be an integer, but it is: "),
        (0, "x", Code.INVALID_REQUEST, "Unknown resource type 0"),
        (64, "x", Code.INVALID_REQUEST, "Unknown resource type 64"),
    ],
)
def test_a_resource_that_can_t_be_altered_is_refused_with_the_reason(
    client: Client, kind: int, name: str, code: Code, message: str
) -> None:
    assert alter(client, kind, name, (RETENTION, SET, "1")) == (code, message)


@pytest.mark.usefixtures("broker_settings")
def test_what_is_set_for_the_broker_lies_over_what_is_set_for_all_brokers(
    client: Client, topic: str
) -> None:
    one, all_of_them = [(MAX_BYTES, SET, "2000000")], [(MAX_BYTES, SET, "3000000")]
    assert alter_all(client, (BROKER, "1", one), (BROKER, "", all_of_them)) == [DONE, DONE]
    layers = [
        (MAX_BYTES, "2000000", 2),
        (MAX_BYTES, "3000000", 3),
        (MAX_BYTES, "1048588", 5),
    ]
    of_this = {MAX_BYTES: ("2000000", 2, layers)}
    assert eventually(lambda: values(client, BROKER, "1", MAX_BYTES), of_this) == of_this
    of_all = ("3000000", 3, [(MAX_BYTES, "3000000", 3)])
    assert values(client, BROKER, "")[MAX_BYTES] == of_all
    of_topic = {"max.message.bytes": ("2000000", 2, layers)}
    assert values(client, TOPIC, topic, "max.message.bytes") == of_topic
    assert alter(client, BROKER, "1", (MAX_BYTES, DELETE, None)) == DONE
    left = {MAX_BYTES: ("3000000", 3, layers[1:])}
    assert eventually(lambda: values(client, BROKER, "1", MAX_BYTES), left) == left


@pytest.mark.usefixtures("broker_settings")
def test_a_setting_of_the_broker_is_in_force_at_once_for_topics_that_have_none_of_their_own(
    client: Client, topic: str
) -> None:
    big = batches.encode(b"x" * 2_000)
    assert produce(client, topic, big).error_code == Code.NONE
    assert alter(client, BROKER, "1", (MAX_BYTES, SET, "1000")) == DONE

    def outcome() -> int:
        return int(produce(client, topic, big).error_code)

    refused = Code.MESSAGE_TOO_LARGE
    assert eventually(outcome, refused) == refused
    assert alter(client, TOPIC, topic, ("max.message.bytes", SET, "3000")) == DONE
    assert eventually(outcome, 0) == Code.NONE


@pytest.mark.usefixtures("broker_settings")
def test_a_list_of_the_broker_can_be_extended(client: Client) -> None:
    policy = "log.cleanup.policy"
    assert alter(client, BROKER, "1", (policy, APPEND, "compact")) == DONE
    both = "delete,compact"
    assert eventually(lambda: value(client, BROKER, "1", policy), both) == both


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize(
    ("key", "given", "message"),
    [
        (
            MAX_BYTES,
            "-1",
            f"Invalid value -1 for configuration {MAX_BYTES}: Value must be at least 0",
        ),
        (
            MAX_BYTES,
            "x",
            f"Invalid value x for configuration {MAX_BYTES}: Not a number of type INT",
        ),
        (
            "group.consumer.assignment.interval.ms",
            "15001",
            (
                "group.consumer.assignment.interval.ms must be less than or equal to "
                "group.consumer.max.assignment.interval.ms"
            ),
        ),
        *(
            (static, given, f"Cannot update these configs dynamically: [{static}]")
            for static, given in (
                ("num.partitions", "3"),
                ("auto.create.topics.enable", "false"),
                ("delete.topic.enable", "false"),
                ("node.id", "7"),
                ("offsets.topic.num.partitions", "7"),
                ("group.max.size", "7"),
                ("transaction.max.timeout.ms", "7"),
                ("socket.request.max.bytes", "7"),
                ("fetch.max.bytes", "7000"),
            )
        ),
    ],
)
def test_a_setting_of_the_broker_that_can_t_be_is_refused_with_the_reason(
    client: Client, name: str, key: str, given: str, message: str
) -> None:
    assert alter(client, BROKER, name, (key, SET, given)) == (Code.INVALID_REQUEST, message)


def test_what_was_altered_is_there_after_kill_9(
    broker: Broker, connect: Callable[[], Client], topic: str, group: str
) -> None:
    if broker.kind != "embedded":
        pytest.skip("a broker that is not ours is not killed for this")
    client = connect()
    interval = "streams.heartbeat.interval.ms"
    assert alter_all(
        client,
        (TOPIC, topic, [(RETENTION, SET, "77")]),
        (BROKER, "1", [("log.retention.ms", SET, "88")]),
        (GROUP, group, [(interval, SET, "6000")]),
    ) == [DONE, DONE, DONE]
    broker.kill()
    broker.restart()
    client = connect()
    assert value(client, TOPIC, topic, RETENTION) == "77"
    assert value(client, BROKER, "1", "log.retention.ms") == "88"
    assert value(client, GROUP, group, interval) == "6000"
    assert alter(client, BROKER, "1", ("log.retention.ms", DELETE, None)) == DONE
