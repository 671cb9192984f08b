"""Repair messages with headers whose names are not UTF-8, before anyone asks for them.

Java's clients read such a name with U+FFFD in the place of what is wrong, and so it is here.
confluent-kafka sets an error when a message's headers are first asked for, and returns a list all
the same, in which the name is a null pointer: to touch that name, or to write the list, ends the
process. The interpreter looks for the error only where C code makes the call: in a loop in Python
it comes to light somewhere later, or not at all.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Message

from streams.common.message_headers import RepairedMessage

_REPLACEMENT = "\ufffd"
_NULL_NAME = "(<NULL>"
_headers_of = Message.headers


def repair_messages(messages: list[Any]) -> list[Any]:
    """Return the messages, with a RepairedMessage in the place of each that needs it.

    The list is changed. Headers must not have been asked for before.
    """
    checked: list[Any] = []
    unchecked = iter(messages)
    while True:
        try:
            checked.extend(map(_headers_of, unchecked))
            return messages
        except SystemError as error:
            at = len(checked)
            messages[at] = repair_message(messages[at], error)
            checked.append(None)


def repair_message(message: Any, error: SystemError) -> RepairedMessage:
    """Return a message with readable headers for one whose method `headers` raised the error.

    At the end of the chain of errors are the bytes of the first wrong name; the others are lost.

    Raises: SystemError, the error itself, if it is about anything else.
    """
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    if not isinstance(cause, UnicodeDecodeError):
        raise error
    pairs = message.headers()
    wrong = [index for index, pair in enumerate(pairs) if repr(pair).startswith(_NULL_NAME)]
    names = dict.fromkeys(wrong, _REPLACEMENT)
    names[wrong[0]] = cause.object.decode(errors="replace")
    # A slice does not touch the null pointer.
    headers = [
        (names[index], *pair[1:]) if index in names else pair for index, pair in enumerate(pairs)
    ]
    return RepairedMessage(message, headers, len(wrong) - 1)
