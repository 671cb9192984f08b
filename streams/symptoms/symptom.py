"""Define a symptom by its code, its page and its messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """Describes a fault that a person can meet, by its code, its page and its messages.

    `page` is the file in docs/troubleshooting with the section whose heading begins with the code.
    `messages` are parts of messages of ours that never change, as they stand in the source; the
    first symptom of the table with one that a message has is the message's. `later_messages` count
    where no symptom has one of its `messages`: reasons that stand in messages of others. `classes`
    are names of our error classes, for errors of which no message is known. `is_general`: the page
    says less than the message, so messages do not point to it.
    """

    code: str
    meaning: str
    page: str
    messages: tuple[str, ...] = ()
    later_messages: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    is_general: bool = False
