"""Test ACLs, quotas and credentials on a broker without authorization or authentication."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.wire import Api, Client, plain

ANY = 1
FILTER = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
ACL = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_without_an_authoriser_acls_are_refused_with_54(client: Client, version: int) -> None:
    refused = {
        "error_code": Code.SECURITY_DISABLED,
        "error_message": "No Authorizer is configured.",
    }
    assert plain(client.send(Api.DESCRIBE_ACLS, version, **FILTER)) == {
        "error_code": Code.SECURITY_DISABLED,
        "error_message": "No Authorizer is configured on the broker",
        "resources": [],
    }
    created = plain(client.send(Api.CREATE_ACLS, version, creations=[ACL, ACL]))
    assert created == {"results": [refused, refused]}
    deleted = plain(client.send(Api.DELETE_ACLS, version, filters=[FILTER, FILTER]))
    assert deleted == {"filter_results": [{**refused, "matching_acls": []}] * 2}


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_comes_too_late_where_nobody_has_to_authenticate(
    client: Client, version: int
) -> None:
    answer = client.send(Api.SASL_HANDSHAKE, version, mechanism="PLAIN")
    assert plain(answer) == {"error_code": Code.ILLEGAL_SASL_STATE, "mechanisms": []}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_so_does_authentication(client: Client, version: int) -> None:
    answer = client.send(Api.SASL_AUTHENTICATE, version, auth_bytes=b"\0me\0secret")
    assert answer.error_code == Code.ILLEGAL_SASL_STATE
    assert answer.error_message == (
        "SaslAuthenticate request received after successful authentication"
    )
    assert answer.auth_bytes == b""


def component(entity: str, match: int = 0) -> dict[str, Any]:
    return {"entity_type": entity, "match_type": match, "match": "x"}


@pytest.mark.parametrize(
    ("components", "code", "message", "entries"),
    [
        ([], Code.NONE, "", []),
        ([component("user")], Code.NONE, "", []),
        ([component("foo")], Code.UNSUPPORTED_VERSION, "Unsupported entity type foo", None),
        (
            [component("user"), component("user")],
            Code.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
            None,
        ),
        ([component("user", 5)], Code.INVALID_REQUEST, "Unknown match type 5", None),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_there_are_no_quotas(
    client: Client, version: int, components: Any, code: Code, message: str, entries: Any
) -> None:
    asked = {"components": components, "strict": False}
    assert plain(client.send(Api.DESCRIBE_CLIENT_QUOTAS, version, **asked)) == {
        "error_code": code,
        "error_message": message,
        "entries": entries,
    }


def alter_quota(client: Client, version: int, remove: bool) -> Any:
    entity = [{"entity_type": "user", "entity_name": "x"}]
    ops = [{"key": "producer_byte_rate", "value": 1_000.0, "remove": remove}]
    answer = plain(
        client.send(
            Api.ALTER_CLIENT_QUOTAS,
            version,
            entries=[{"entity": entity, "ops": ops}],
            validate_only=True,
        )
    )
    [entry] = answer["entries"]
    assert entry.pop("entity") == entity
    return entry


@pytest.mark.parametrize("version", [0, 1])
def test_a_quota_that_there_isn_t_is_removed_without_complaint(
    client: Client, version: int
) -> None:
    removed = alter_quota(client, version, remove=True)
    assert removed == {"error_code": Code.NONE, "error_message": None}


def test_a_quota_that_would_not_be_held_is_refused(broker: Broker, client: Client) -> None:
    if broker.kind != "embedded":
        pytest.skip("real Kafka has quotas")
    assert alter_quota(client, 1, remove=False)["error_code"] == Code.INVALID_REQUEST


def test_no_user_has_credentials(client: Client) -> None:
    names = [{"name": name} for name in ("x", "y", "x")]
    found = plain(client.send(Api.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=names))
    missing = "Attempt to describe a user credential that does not exist"
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request"
    assert (found["error_code"], found["error_message"]) == (Code.NONE, "")
    results = sorted(found["results"], key=lambda result: str(result["user"]))
    assert results == [
        {"user": name, "error_code": code, "error_message": message, "credential_infos": []}
        for name, code, message in (
            ("x", Code.DUPLICATE_RESOURCE, f"{twice}: x"),
            ("y", Code.RESOURCE_NOT_FOUND, f"{missing}: y"),
        )
    ]
    for nothing in (None, ()):
        nobody = plain(client.send(Api.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=nothing))
        assert nobody["results"] == []


def test_credentials_that_there_aren_t_can_t_be_deleted(client: Client) -> None:
    answer = plain(
        client.send(Api.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[{"name": "x", "mechanism": 1}])
    )
    message = "Attempt to delete a user credential that does not exist"
    refused = {"user": "x", "error_code": Code.RESOURCE_NOT_FOUND, "error_message": message}
    assert answer == {"results": [refused]}


def test_credentials_that_would_not_be_asked_for_are_refused(
    broker: Broker, client: Client
) -> None:
    if broker.kind != "embedded":
        pytest.skip("real Kafka has SCRAM")
    salted = {"iterations": 4_096, "salt": b"a", "salted_password": b"b"}
    answer = client.send(
        Api.ALTER_USER_SCRAM_CREDENTIALS, 0, upsertions=[{"name": "x", "mechanism": 1, **salted}]
    )
    [result] = answer.results
    assert (result.user, result.error_code) == ("x", Code.UNSUPPORTED_SASL_MECHANISM)


def raw(client: Client, api: Api, version: int, **fields: Any) -> bytes:
    """Return a response's bytes without the header, as kio parses no -1 in a timestamp."""
    number = client.post(api, version, **fields)
    client.forget(number)
    flexible = version >= 2
    return client.read_frame()[5 if flexible else 4 :]


NOT_ALLOWED = Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.to_bytes(2, "big")
NEVER, NO_THROTTLE = b"\xff" * 8, bytes(4)


def test_over_a_connection_without_authentication_there_are_no_tokens(client: Client) -> None:
    compact, plain_text = b"\x05User\x0aANONYMOUS", b"\0\x04User\0\x09ANONYMOUS"
    wanted = {"renewers": [], "max_lifetime": 1_000}
    for version, owner, ending in (
        (1, plain_text, bytes(6) + NO_THROTTLE),
        (2, compact, b"\x01\x01" + NO_THROTTLE + b"\0"),
        (3, compact + compact, b"\x01\x01" + NO_THROTTLE + b"\0"),
    ):
        answer = raw(client, Api.CREATE_DELEGATION_TOKEN, version, **wanted)
        assert answer == NOT_ALLOWED + owner + 3 * NEVER + ending
    for version in (1, 2):
        expected = NOT_ALLOWED + NEVER + NO_THROTTLE + (b"\0" if version == 2 else b"")
        renew = raw(client, Api.RENEW_DELEGATION_TOKEN, version, hmac=b"x", renew_period=9)
        expire = raw(client, Api.EXPIRE_DELEGATION_TOKEN, version, hmac=b"x", expiry_time_period=9)
        assert (renew, expire) == (expected, expected)
    for version in (1, 2, 3):
        described = client.send(Api.DESCRIBE_DELEGATION_TOKEN, version, owners=None)
        assert plain(described) == {
            "error_code": Code.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "tokens": [],
        }
