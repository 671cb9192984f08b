"""Test what a member of a streams group says of a refusal that ends it."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from streams.errors import AuthorizationError, StreamsError
from streams.membership.streams.refusals import explain_refusal


def test_a_missing_right_to_topics_does_not_name_the_group_as_one() -> None:
    error = explain_refusal("orders", ErrorCode.topic_authorization_failed, "words is missing.")
    assert type(error) is StreamsError
    assert "topic 'orders'" not in str(error)
    assert "TOPIC_AUTHORIZATION_FAILED: words is missing)".lower() in str(error).lower()


def test_a_missing_right_to_the_group_names_it() -> None:
    with pytest.raises(AuthorizationError, match="group 'orders'"):
        explain_refusal("orders", ErrorCode.group_authorization_failed, "")


@pytest.mark.parametrize(
    ("refused", "message", "code"),
    [
        (ErrorCode.group_max_size_reached, "its maximum capacity.", "MR-032"),
        (ErrorCode.group_id_not_found, "Group orders is not a streams group.", "MR-030"),
        (ErrorCode.inconsistent_group_protocol, "", "MR-030"),
        (ErrorCode.invalid_request, "Topology updates are not supported yet.", "MR-033"),
    ],
)
def test_a_refusal_has_the_code_of_its_fault(refused: ErrorCode, message: str, code: str) -> None:
    assert explain_refusal("orders", refused, message).code == code


def explain_other_topology(clauses: tuple[str, ...] | None) -> str:
    return str(
        explain_refusal(
            "orders",
            ErrorCode.invalid_request,
            "Topology updates are not supported yet.",
            lambda: clauses,
        )
    )


def test_another_topology_is_refused_with_what_differs() -> None:
    clauses = tuple(f"input 'i{number}' is of the group only" for number in range(7))
    told = explain_other_topology(clauses)
    assert "They differ: input 'i0' is of the group only; input 'i1'" in told
    assert "input 'i4' is of the group only; and 2 more. If another" in told
    assert "They differ: input 'i0' is of the group only. If" in explain_other_topology(clauses[:1])


def test_differences_that_brokers_do_not_tell_are_said_to_be_such() -> None:
    assert "The brokers tell no difference" in explain_other_topology(())
    assert "differ" not in explain_other_topology(None)
