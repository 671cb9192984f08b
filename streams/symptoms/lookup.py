"""Find the symptom that an error or a message is of."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

from streams.symptoms.class_messages import CLASS_MESSAGES
from streams.symptoms.symptom import Symptom
from streams.symptoms.table import SYMPTOMS

SymptomCode: TypeAlias = str
MessageParts: TypeAlias = tuple[str, ...]

_BY_CODE = {each.code: each for each in SYMPTOMS}
_BY_CLASS = {name: each for each in SYMPTOMS for name in each.classes}


def find_by_message(message: str) -> Symptom | None:
    """Return the first symptom of the table with a part of a message in it, None for no symptom."""
    parts = ((each, part) for each in SYMPTOMS for part in each.messages)
    later = ((each, part) for each in SYMPTOMS for part in each.later_messages)
    return next((each for each, part in chain(parts, later) if part in message), None)


def find_by_text(text: str) -> Symptom | None:
    """Return the symptom of a message whose error is not at hand; None for no symptom."""
    codes = (code for code, parts in list_message_parts() if any(part in text for part in parts))
    return next((_BY_CODE[code] for code in codes), None)


def list_message_parts(*, of_classes: bool = True) -> Iterator[tuple[SymptomCode, MessageParts]]:
    """Yield all codes with parts of their messages, in the order in which they decide of a text.

    Last come, unless `of_classes` is False, the parts that tell the class of an error of ours.
    """
    yield from ((each.code, each.messages) for each in SYMPTOMS)
    yield from ((each.code, each.later_messages) for each in SYMPTOMS)
    if of_classes:
        yield from CLASS_MESSAGES.items()


def find_by_class(error_class: type[BaseException]) -> Symptom | None:
    """Return the symptom of the nearest class in the order of inheritance that has one."""
    found = (_BY_CLASS.get(each.__name__) for each in error_class.__mro__)
    return next((symptom for symptom in found if symptom is not None), None)


def find_symptom(error: BaseException) -> Symptom | None:
    """Return the symptom of an error: that of its message, or else that of its class.

    None for an error that is none of ours.
    """
    by_class = find_by_class(type(error))
    return by_class and choose_symptom(str(error), by_class)


def choose_symptom(message: str, by_class: Symptom | None) -> Symptom | None:
    """Return the symptom of a message whose error's class has one: what says more goes over it.

    Parts that only tell the class (`CLASS_MESSAGES`) say nothing where it is known.
    """
    return find_by_message(message) or by_class


def format_page_address(symptom: Symptom | None) -> str:
    """Return the end of a message, " (see MR-0xx)", or nothing where the page says no more."""
    return "" if symptom is None or symptom.is_general else f" (see {symptom.code})"


def normalise_code(written: str) -> str:
    """Return a code as the table has it, of one as people write it: `mr12`, `12`, `MR-012`."""
    digits = written.strip().upper().removeprefix("MR").lstrip("-_ ")
    return f"MR-{int(digits):03d}" if digits.isdecimal() else written.strip().upper()


def find_by_code(written: str) -> Symptom | None:
    """Return the symptom with a code, None if there is none."""
    return _BY_CODE.get(normalise_code(written))


def find_nearest_code(written: str) -> str:
    """Return the code that was probably meant: spelt most alike, or the nearest number."""
    code = normalise_code(written)
    number = code.removeprefix("MR-")
    if number.isdecimal():
        return min(_BY_CODE, key=lambda each: abs(int(each[3:]) - int(number)))
    alike = difflib.get_close_matches(code, _BY_CODE, n=1, cutoff=0.0)
    return alike[0]
