"""Test the coordinators, list and description of groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import eventually
from tests.conformance.members import Member, alone, together
from tests.conformance.wire import Api, Client, plain

GROUP, TRANSACTION, SHARE, NO_TYPE = 0, 1, 2, 3
NOT_ASKED_FOR = -(2**31)
NOBODY = {"node_id": -1, "host": "", "port": -1}
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


# FindCoordinator


def look_for(client: Client, version: int, key_type: int, *keys: str) -> Any:
    fields: dict[str, Any] = {"coordinator_keys": keys} if version >= 4 else {"key": keys[0]}
    if version >= 1:
        fields["key_type"] = key_type
    return plain(client.send(Api.FIND_COORDINATOR, version, **fields))


def here(client: Client) -> dict[str, Any]:
    (broker,) = plain(client.send(Api.METADATA, 12, topics=())).pop("brokers")
    return {name: broker[name] for name in ("node_id", "host", "port")}


@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION])
@pytest.mark.parametrize("version", range(7))
def test_this_broker_coordinates_each_group_and_each_transactional_id(
    client: Client, version: int, key_type: int
) -> None:
    if version == 0 and key_type != GROUP:
        return
    answer = look_for(client, version, key_type, "one", "two")
    found = {**here(client), "error_code": Code.NONE}
    if version >= 4:
        found["error_message"] = ""
        assert answer == {"coordinators": [{"key": key, **found} for key in ("one", "two")]}
    else:
        assert answer == found | ({"error_message": "NONE"} if version else {})


@pytest.mark.parametrize("version", range(1, 7))
def test_a_type_of_key_that_there_is_not_is_refused_with_42_for_each_key(
    client: Client, version: int
) -> None:
    answer = look_for(client, version, NO_TYPE, "one", "two")
    refused = {**NOBODY, "error_code": Code.INVALID_REQUEST, "error_message": MALFORMED}
    if version >= 4:
        assert answer["coordinators"] == [{"key": key, **refused} for key in ("one", "two")]
    else:
        assert answer == refused


@pytest.mark.parametrize("version", range(1, 6))
def test_before_version_6_share_groups_are_not_asked_for(client: Client, version: int) -> None:
    answer = look_for(client, version, SHARE, f"group:{TOPIC_ID}:0")
    (found,) = answer["coordinators"] if version >= 4 else (answer,)
    assert found["error_code"] == Code.INVALID_REQUEST
    assert found["error_message"] == ("" if version >= 4 else MALFORMED)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (f"group:{TOPIC_ID}:0", Code.NONE),
        (f"a:group:{TOPIC_ID}:7", Code.NONE),
        ("group", Code.INVALID_REQUEST),
        (f":{TOPIC_ID}:0", Code.INVALID_REQUEST),
        ("group:short:0", Code.INVALID_REQUEST),
        (f"group:{TOPIC_ID}:zero", Code.INVALID_REQUEST),
        ("", Code.INVALID_REQUEST),
    ],
)
def test_the_key_of_a_share_group_names_group_topic_id_and_partition(
    client: Client, key: str, code: Code
) -> None:
    (found,) = look_for(client, 6, SHARE, key)["coordinators"]
    assert (found["key"], found["error_code"]) == (key, code)
    assert found["node_id"] == (-1 if code else 1)


# ListGroups


@pytest.fixture
def member(connect: Callable[[], Client], group: str) -> Callable[..., Member]:
    """Return a function that makes members of one group, each on a connection of its own."""
    return lambda *arguments, **fields: Member(connect(), group, *arguments, **fields)


def listed(client: Client, group: str, version: int, **filters: tuple[str, ...]) -> Any:
    """Return the group's entry in the list; None if it isn't there."""
    answer = client.send(Api.LIST_GROUPS, version, **filters)
    assert answer.error_code == Code.NONE
    return next((plain(each) for each in answer.groups if each.group_id == group), None)


@pytest.mark.parametrize("version", range(6))
def test_a_stable_group_is_listed_as_far_as_the_version_tells(
    client: Client, member: Callable[..., Member], group: str, version: int
) -> None:
    alone(member())
    expected = {"group_id": group, "protocol_type": "consumer"}
    if version >= 4:
        expected["group_state"] = "Stable"
    if version >= 5:
        expected["group_type"] = "classic"
    assert listed(client, group, version) == expected


def test_each_state_is_listed(client: Client, member: Callable[..., Member], group: str) -> None:
    def state() -> str:
        found: str = listed(client, group, 4)["group_state"]
        return found

    first, second = alone(member()), member()
    second.ask_for_id()
    joining = second.post_join()
    assert eventually(state, "PreparingRebalance") == "PreparingRebalance"
    first.join()
    second.joined(joining)
    assert state() == "CompletingRebalance"
    first.sync({})
    assert state() == "Stable"
    first.leave()
    second.leave()
    assert state() == "Empty"


@pytest.mark.parametrize(
    ("states", "types", "is_listed"),
    [
        (("stable",), (), True),
        (("STABLE ",), (), True),
        (("\tStable ", "nonsense"), (), True),
        (("Empty",), (), False),
        (("stab",), (), False),
        (("",), (), False),
        ((), ("classic",), True),
        ((), ("Classic", "nonsense"), True),
        ((), (" classic",), False),
        ((), ("consumer", "share", "streams"), False),
        ((), ("unknown",), False),
        ((), ("",), False),
        (("Stable",), ("CLASSIC",), True),
        (("Stable",), ("consumer",), False),
        (("Empty",), ("classic",), False),
    ],
)
def test_filters_are_names_of_states_and_types_in_any_case(
    client: Client,
    member: Callable[..., Member],
    group: str,
    states: tuple[str, ...],
    types: tuple[str, ...],
    is_listed: bool,
) -> None:
    alone(member())
    found = listed(client, group, 5, states_filter=states, types_filter=types)
    assert (found is not None) is is_listed


# DescribeGroups


def described(client: Client, group: str, version: int, **fields: Any) -> Any:
    (found,) = client.send(Api.DESCRIBE_GROUPS, version, groups=[group], **fields).groups
    return plain(found)


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_described_as_far_as_the_version_tells(
    client: Client, member: Callable[..., Member], group: str, version: int
) -> None:
    first, second = alone(member("one")), member(user_data=b"mine")
    together(first, second)
    found = described(client, group, version)
    told = {each["member_id"]: each for each in found.pop("members")}
    expected: dict[str, Any] = {
        "error_code": Code.NONE,
        "group_id": group,
        "group_state": "Stable",
        "protocol_type": "consumer",
        "protocol_data": "range",
    }
    if version >= 3:
        expected["authorized_operations"] = NOT_ASKED_FOR
    if version >= 6:
        expected["error_message"] = None
    assert found == expected
    assert told.keys() == {first.member_id, second.member_id}
    assert told[second.member_id]["member_assignment"] == b"second"
    assert told[second.member_id]["member_metadata"].endswith(b"mine")
    assert told[second.member_id]["client_host"].startswith("/")
    if version >= 4:
        assert told[first.member_id]["group_instance_id"] == "one"
        assert told[second.member_id]["group_instance_id"] is None


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_there_is_not_is_dead_and_from_version_6_on_an_error(
    client: Client, group: str, version: int
) -> None:
    found = described(client, group, version)
    assert (found["group_state"], found["members"], found["protocol_type"]) == ("Dead", [], "")
    if version >= 6:
        assert found["error_code"] == Code.GROUP_ID_NOT_FOUND
        assert found["error_message"] == f"Group {group} not found."
    else:
        assert found["error_code"] == Code.NONE


def test_during_a_round_neither_protocol_nor_metadata_are_described(
    client: Client, member: Callable[..., Member], group: str
) -> None:
    someone = member()
    someone.join()
    found = described(client, group, 5)
    assert (found["group_state"], found["protocol_data"]) == ("CompletingRebalance", "")
    assert [each["member_metadata"] for each in found["members"]] == [b""]


@pytest.mark.parametrize("version", range(3, 7))
def test_who_asks_what_he_may_do_with_a_group_may_do_everything(
    client: Client, member: Callable[..., Member], group: str, version: int
) -> None:
    alone(member())
    asked: dict[str, Any] = {"include_authorized_operations": True}
    assert described(client, group, version, **asked)["authorized_operations"] == 3_400
    nothing = described(client, f"no-{group}", version, **asked)
    expected = NOT_ASKED_FOR if nothing["error_code"] else 3_400
    assert nothing["authorized_operations"] == expected
