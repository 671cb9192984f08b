"""Test messages with headers whose names are not UTF-8."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from confluent_kafka import Message

from streams.common.message_headers import RepairedMessage
from streams.runtime.clients.header_names import repair_message, repair_messages

Pair = tuple[Any, ...]


class Unreadable:
    """Behaves as a message of confluent-kafka with wrong names: its first call alone raises."""

    def __init__(self, *headers: tuple[bytes, bytes | None]) -> None:
        self._pairs: list[Pair] | None = None
        self._headers = headers

    def value(self) -> bytes:
        return b"value"

    def headers(self) -> list[Pair]:
        if self._pairs is not None:
            return self._pairs
        self._pairs = []
        wrong: Exception | None = None
        for name, value in self._headers:
            try:
                self._pairs.append((name.decode(), value))
            except UnicodeDecodeError as error:
                self._pairs.append(pair_without_a_name(value))
                wrong = error if wrong is None else caused_by(wrong)
        if wrong is not None:
            raise caused_by(wrong)
        return self._pairs


def caused_by(error: Exception) -> SystemError:
    """Return the error of a C function that returns a result while this error is set."""
    raised = SystemError("returned a result with an exception set")
    raised.__cause__ = error
    return raised


def pair_without_a_name(value: bytes | None) -> Pair:
    """Return a tuple whose first element is a null pointer."""
    create = ctypes.pythonapi.PyTuple_New
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_ssize_t]
    put = ctypes.pythonapi.PyTuple_SetItem
    put.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.py_object]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))  # which the tuple takes over
    pair: Pair = create(2)
    put(id(pair), 1, value)
    return pair


def repair(message: Unreadable) -> RepairedMessage:
    with pytest.raises(SystemError) as raised:
        message.headers()
    return repair_message(message, raised.value)


def test_messages_that_can_be_read_are_as_they_are() -> None:
    messages = [
        Message("t", headers=[("a", b"1"), ("ü", None), ("a", b"2")]),
        Message("t"),
    ]
    repaired = repair_messages([*messages])
    assert all(one is other for one, other in zip(repaired, messages, strict=True))
    assert repair_messages([]) == []


def test_what_is_not_utf8_in_a_name_is_replaced() -> None:
    repaired = repair(Unreadable((b"a", b"1"), (b"M\xfcller", None), (b"b", b"2")))
    assert repaired.headers() == [("a", b"1"), ("M\ufffdller", None), ("b", b"2")]
    assert (repaired.lost_names, repaired.value()) == (0, b"value")


def test_a_repaired_message_has_the_length_and_all_else_that_messages_have() -> None:
    message = Message("t", value=b"12345", headers=[("a", b"1")])
    repaired = RepairedMessage(message, [], 0)
    assert len(repaired) == len(message) == 5
    special = {name for name in dir(Message) if name not in dir(object) and name[:2] == "__"}
    assert special <= set(dir(RepairedMessage))


def test_of_several_wrong_names_the_first_is_told() -> None:
    repaired = repair(
        Unreadable((b"caf\xe9", b"1"), (b"a", b"2"), (b"\xff", b"3"), (b"\xfc", b"4"))
    )
    assert repaired.headers() == [
        ("caf\ufffd", b"1"),
        ("a", b"2"),
        ("\ufffd", b"3"),
        ("\ufffd", b"4"),
    ]
    assert repaired.lost_names == 2


def test_another_system_error_is_raised_again() -> None:
    with pytest.raises(SystemError, match="of another kind"):
        repair_message(None, SystemError("of another kind"))
