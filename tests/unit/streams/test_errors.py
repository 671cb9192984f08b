"""Test that an error keeps its type and its parts where only its text is passed on."""

from __future__ import annotations

import pickle

import pytest

from streams.errors import AuthorizationError


@pytest.mark.parametrize(
    ("operation", "resource", "name"),
    [
        ("Read", "topic", "lines"),
        ("Describe", "group", "it's one"),
        ("Write", "transactional id", "word-count-0"),
        ("IdempotentWrite", "cluster", "kafka-cluster"),
    ],
)
def test_a_missing_right_is_told_from_its_message(operation: str, resource: str, name: str) -> None:
    error = AuthorizationError(operation, resource, name)
    for passed_on in (
        AuthorizationError.from_message(str(error)),
        pickle.loads(pickle.dumps(error)),
    ):
        assert str(passed_on) == str(error)
        assert vars(passed_on) == {"operation": operation, "resource": resource, "name": name}


@pytest.mark.parametrize("message", ["", "not allowed to Read topic 'lines'", "not allowed"])
def test_another_message_is_none_of_a_missing_right(message: str) -> None:
    with pytest.raises(ValueError, match="not the message of a missing right"):
        AuthorizationError.from_message(message)
