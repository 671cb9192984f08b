"""Test that data of members and leader survives encoding, and that foreign bytes are refused."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable

import orjson
import pytest
from kio.schema.consumer_protocol_assignment.v3.data import ConsumerProtocolAssignment
from kio.schema.consumer_protocol_subscription.v3.data import ConsumerProtocolSubscription
from kio.serial import entity_reader

from coordinator.assignors import consumer_protocol
from coordinator.assignors.subscriptions import ConsumerSubscription
from streams.common.topic_partitions import Partition
from streams.membership.protocol import (
    RUNNING_OFFSET,
    AssignmentInfo,
    EndpointTasks,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streams.topology.declared import DeclaredSubtopology, DeclaredTopology, encode_topology

ASSIGNED = AssignmentInfo(("0_0", "0_1", "1_0"), (("in", 0), ("in", 1), ("other", 0)))


DECLARED = DeclaredTopology(
    "0123456789abcdef", {0: DeclaredSubtopology(frozenset({"in"}))}, {"a-repartition": None}
)
REQUIRED = {"format": 1, "tasks": [], "generation": -1, "topology": encode_topology(DECLARED)}
"""The fields that every subscription has."""


@pytest.mark.parametrize("tasks", [(), ("0_0",), ("0_0", "1_11")])
def test_a_subscription_comes_back_with_its_tasks(tasks: tuple[str, ...]) -> None:
    found = decode_subscription(encode_subscription(["in"], SubscriptionInfo(tasks), DECLARED))
    assert found == SubscriptionInfo(tasks, topics=("in",), topology=DECLARED)


def test_a_subscription_comes_back_with_its_topology() -> None:
    found = decode_subscription(encode_subscription(["in"], SubscriptionInfo(("0_0",)), DECLARED))
    assert found == SubscriptionInfo(("0_0",), topics=("in",), topology=DECLARED)


def test_a_subscription_comes_back_with_what_the_member_ran_before_it_was_lost() -> None:
    lost = SubscriptionInfo((), topics=("in",), topology=DECLARED, former=("0_0", "1_1"))
    assert decode_subscription(encode_subscription(["in"], lost, DECLARED)) == lost


@pytest.mark.parametrize("generation", [-1, 7])
def test_a_subscription_comes_back_with_owner_and_offsets(generation: int) -> None:
    owner = SubscriptionInfo(
        ("0_0",),
        topics=("in",),
        topology=DECLARED,
        generation=generation,
        process="p",
        directory="d",
        offsets={"0_0": RUNNING_OFFSET, "0_1": 500},
        tags={"zone": "a"},
    )
    assert decode_subscription(encode_subscription(["in"], owner, DECLARED)) == owner


def test_fields_of_a_later_release_are_skipped() -> None:
    fields = {**REQUIRED, "tasks": ["0_0"], "lags": {"0_1": 7}, "tags": {}}
    found = decode_subscription(encode_user_data(fields, decode_subscription))
    assert found == SubscriptionInfo(("0_0",), topics=("in",), topology=DECLARED)


@pytest.mark.parametrize("missing", ["topology", "generation"])
def test_a_subscription_that_every_member_says_more_of_is_refused(missing: str) -> None:
    fields = {name: value for name, value in REQUIRED.items() if name != missing}
    with pytest.raises(ValueError, match=f"unknown format: {missing} is missing"):
        decode_subscription(encode_user_data(fields, decode_subscription))


@pytest.mark.parametrize(
    "assigned",
    [
        AssignmentInfo((), ()),
        ASSIGNED,
        ASSIGNED._replace(notice="two versions", fingerprint="ab", leader="cd"),
        AssignmentInfo((), (), refused="another topology", fingerprint="ab", leader="cd"),
        ASSIGNED._replace(revoked=("0_2",)),
        ASSIGNED._replace(
            standby=("0_2",),
            warmup=("0_3",),
            following=(Partition("in", 2), ("in", 3)),
            rejoin_ms=600_000,
        ),
    ],
)
def test_an_assignment_comes_back_with_tasks_and_partitions(assigned: AssignmentInfo) -> None:
    assert decode_assignment(encode_assignment(assigned)) == assigned


def test_no_bytes_are_an_assignment_of_nothing() -> None:
    assert decode_assignment(b"") == AssignmentInfo((), ())


def test_kafkas_own_tools_find_the_topics_in_a_subscription() -> None:
    data = encode_subscription(["in", "other"], SubscriptionInfo(()), DECLARED)
    entity, _ = entity_reader(ConsumerProtocolSubscription)(data, 2)
    assert (data[:2], entity.topics) == (b"\0\3", ("in", "other"))


def test_kafkas_own_tools_find_the_partitions_in_an_assignment() -> None:
    data = encode_assignment(ASSIGNED)
    entity, _ = entity_reader(ConsumerProtocolAssignment)(data, 2)
    found = {each.topic: each.partitions for each in entity.assigned_partitions}
    assert (data[:2], found) == (b"\0\3", {"in": (0, 1), "other": (0,)})


FOREIGN = {
    "noise": b"foreign bytes",
    "half a version": b"\0",
    "a version and no more": b"\0\3",
    "an older version": b"\0\1" + b"\0\0\0\0" + b"\xff\xff\xff\xff" + b"\0\0\0\0",
    "no version that can be": b"\xff\xff" + encode_assignment(ASSIGNED)[2:],
    "torn": encode_subscription(["in"], SubscriptionInfo(("0_0",)), DECLARED)[:-12],
    "Kafka Streams' user data": b"\0\3" + b"\0\0\0\0" + b"\0\0\0\2\0\x0b" + b"\0\0\0\0" * 2,
    "no user data": b"\0\3" + b"\0\0\0\0" + b"\xff\xff\xff\xff" + b"\0\0\0\0" * 2,
    "a later format": encode_assignment(ASSIGNED).replace(b'"format":1', b'"format":2'),
}


REFUSALS = r"ConsumerProtocol|unknown format|later release|JSON|unexpected"


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment])
@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_foreign_bytes_are_refused(decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(ValueError, match=REFUSALS):
        decode(data)


def encode_user_data(fields: object, decode: Callable[[bytes], object]) -> bytes:
    """Return a subscription or an assignment with this JSON as its user data."""
    user_data = orjson.dumps(fields)
    if decode is decode_assignment:
        return consumer_protocol.encode_assignment((), user_data)
    return consumer_protocol.encode_subscription(ConsumerSubscription(("in",), user_data))


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment])
def test_user_data_without_tasks_are_refused(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(ValueError, match="unknown format"):
        decode(encode_user_data({"format": 1}, decode))


MISTYPED: dict[Callable[[bytes], object], dict[str, list[object]]] = {
    decode_subscription: {
        "tasks": [None, 7, "0_0", [1], {}],
        "generation": ["1", []],
        "offsets": [[], 3, {"0_0": "many"}],
        "tags": [{"zone": 1}],
        "directory": [1],
        "topology": [{}, 1, "AAAA", "é"],
    },
    decode_assignment: {
        "tasks": [None, 7, "0_0", [1], {}],
        "topology": ["text", {"leader": 1}],
        "following": [7, [["in"]], [["in", "0"]], ["in"], [None]],
        "rejoin_ms": ["soon"],
    },
}


@pytest.mark.parametrize(
    ("decode", "name", "value"),
    [
        (decode, name, value)
        for decode, fields in MISTYPED.items()
        for name, values in fields.items()
        for value in values
    ],
)
def test_a_field_of_another_type_is_refused(
    decode: Callable[[bytes], object], name: str, value: object
) -> None:
    with pytest.raises(ValueError, match=r"unknown format|not a declared topology"):
        decode(encode_user_data({**REQUIRED, name: value}, decode))


def test_many_offsets_are_deflated_and_few_are_as_they_are() -> None:
    few = {f"0_{number}": 10**8 + number for number in range(50)}
    many = {f"{sub}_{number}": 10**8 + number for sub in range(5) for number in range(50)}
    for offsets in ({}, few, many):
        encoded = encode_subscription(["in"], SubscriptionInfo((), offsets=offsets), DECLARED)
        assert decode_subscription(encoded).offsets == offsets
        assert (b'"deflated"' in encoded) == (offsets is many)
    assert len(encoded) < len(orjson.dumps(many)) / 2


def deflate(value: object) -> str:
    return base64.b64encode(zlib.compress(orjson.dumps(value))).decode()


@pytest.mark.parametrize("deflated", ["no base64!", "AAAA", 7, deflate([1]), deflate({"0_0": "x"})])
def test_deflated_offsets_that_no_member_has_sent_are_refused(deflated: object) -> None:
    encoded = encode_user_data({**REQUIRED, "deflated": deflated}, decode_subscription)
    with pytest.raises(ValueError, match="user data of an unknown format: deflated"):
        decode_subscription(encoded)


@pytest.mark.parametrize("task_count", [1, 500])
def test_endpoints_come_back_deflated_where_there_are_many(task_count: int) -> None:
    tasks = tuple(f"0_{number}" for number in range(task_count))
    endpoints = {"a:1": EndpointTasks(tasks, ()), "[::1]:2": EndpointTasks((), ("1_0",))}
    encoded = encode_assignment(ASSIGNED._replace(endpoints=endpoints))
    assert decode_assignment(encoded).endpoints == endpoints
    assert (b"endpoints_deflated" in encoded) == (task_count > 1)
    subscribed = SubscriptionInfo((), topics=("in",), topology=DECLARED, endpoint="a:1")
    assert decode_subscription(encode_subscription(["in"], subscribed, DECLARED)) == subscribed


@pytest.mark.parametrize("wrong", [[1], {"a:1": []}, {"a:1": [[], "0_0"]}, {"a:1": [[1], []]}])
def test_endpoints_that_no_leader_has_sent_are_refused(wrong: object) -> None:
    fields = {"format": 1, "tasks": [], "endpoints": wrong}
    encoded = encode_user_data(fields, decode_assignment)
    with pytest.raises(ValueError, match="user data of an unknown format: endpoints"):
        decode_assignment(encoded)
