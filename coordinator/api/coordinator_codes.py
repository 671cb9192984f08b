"""Translate the coordinators' codes to those that a client's version expects."""

from __future__ import annotations

from typing import TypeAlias

from coordinator.errors import Code, Refused

ErrorMessage: TypeAlias = str

# Codes for the state of the coordinator, which come without a message.
_WITHOUT_MESSAGE = frozenset(
    {
        Code.UNKNOWN_SERVER_ERROR,
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.COORDINATOR_NOT_AVAILABLE,
        Code.NOT_COORDINATOR,
    }
)


def translate_coordinator_code(code: Code) -> Code:
    """Translate the codes of a failed append to those that Kafka's coordinator answers.

    KAFKA_STORAGE_ERROR becomes NOT_COORDINATOR, so that clients look for the coordinator again and
    retry; MESSAGE_TOO_LARGE becomes UNKNOWN_SERVER_ERROR, as the client can't make the record
    smaller.
    """
    match code:
        case Code.KAFKA_STORAGE_ERROR:
            return Code.NOT_COORDINATOR
        case Code.MESSAGE_TOO_LARGE:
            return Code.UNKNOWN_SERVER_ERROR
        case _:
            return code


def translate_coordinator_refusal(refusal: Refused) -> tuple[Code, ErrorMessage | None]:
    """Translate a refusal's code, and return it with the message, if the code comes with one."""
    code = translate_coordinator_code(refusal.code)
    return code, None if code in _WITHOUT_MESSAGE else refusal.message or None


def translate_fenced_code(code: Code, version: int, *, fenced_since: int) -> Code:
    """Translate PRODUCER_FENCED to INVALID_PRODUCER_EPOCH below the version `fenced_since`.

    Other codes are translated as by `translate_coordinator_code`.
    """
    if code is Code.PRODUCER_FENCED and version < fenced_since:
        return Code.INVALID_PRODUCER_EPOCH
    return translate_coordinator_code(code)
