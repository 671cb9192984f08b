"""Show keys and values of records in messages no further than the application allows.

    log_values   a value in a message is                 an exception's text
    full         its type and its beginning              as it is
    types        its type and size, not its content      words that are the record's are taken out
    none         not described                           only its type

The setting `log_values` holds for the threads of an application (`limit_shown_values`). Without
it, as in a test driver or a command, messages are full. Texts of exceptions may have parts of a
value that are not found, such as a word of a longer text: `none` is for those to whom that matters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any


class ShownValues(StrEnum):
    """Names how much of a record's values messages show."""

    NONE = "none"
    TYPES = "types"
    FULL = "full"


_SHOWN: ContextVar[ShownValues] = ContextVar("shown_values", default=ShownValues.FULL)
_PARTS_MAX = 1_000
"""The most parts of a value that are looked for in an exception's text."""
_COUNTED = {str: "characters", bytes: "bytes", bytearray: "bytes"}


@contextmanager
def limit_shown_values(shown: ShownValues) -> Iterator[None]:
    """Limit what messages show, in the block and in threads that take its context over."""
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def read_repr_safely(value: object) -> str:
    """Return the repr of a value or an error; its type, where a user's `__repr__` raises."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"


def read_text_safely(value: object) -> str:
    """Return the text of a value or an error; its type, where a user's `__str__` raises."""
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose text raises {type(error).__name__}>"


def describe_value(value: object) -> str:
    """Return the type of a value and as much of it as may be shown; its repr may be a user's."""
    if (described := _describe_size(value)) is not None:
        return described
    try:
        return f"{type(value).__name__}: {value!r:.200}"
    except Exception as error:  # as for what is nested deeply, whose refusal must not be lost
        return f"{type(value).__name__}, whose repr raises {type(error).__name__}"


def quote_value(value: object) -> str:
    """Return the beginning of a value's repr, or what may be shown in its place in brackets."""
    described = _describe_size(value)
    return f"{read_repr_safely(value):.200}" if described is None else f"<{described}>"


def hide_values(text: str, error: BaseException, *values: object) -> str:
    """Return an exception's text without the values of a record that it quotes.

    Only what the exception itself says is changed, so that the line of code, or a topic's name,
    that `text` has beside it stays. With `none` it is replaced by the exception's type. With
    `types` each part of a value is taken out where it stands as a word, however short it is: "1
    value" becomes "<int> value" if the record has a 1, since what is a value can't be told there.
    An exception with a true attribute `is_always_shown` is left as it is: its text has names and
    no values.
    """
    shown = _SHOWN.get()
    if shown is ShownValues.FULL or getattr(error, "is_always_shown", False):
        return text
    own_texts = sorted(
        {read_repr_safely(error), read_text_safely(error)} - {""}, key=len, reverse=True
    )
    if shown is ShownValues.NONE:
        name = type(error).__name__
        for own in own_texts:
            text = text.replace(own, name)
        return text
    parts = _index_parts_by_text(values)
    if not parts:
        return text
    begin, found, end = text, "", ""
    for own in own_texts:
        begin, found, end = text.partition(own)
        if found:
            break
    else:
        return _replace_parts_by_sizes(text, parts)  # a text that has been made of the exception's
    name = f"{type(error).__name__}("
    prefix = name if found.startswith(name) else ""
    return f"{begin}{prefix}{_replace_parts_by_sizes(found[len(prefix) :], parts)}{end}"


def _index_parts_by_text(values: tuple[object, ...]) -> dict[str, object]:
    """Return the parts of values, at any depth, by their text and by their repr."""
    parts: dict[str, object] = {}
    for value in values:
        for part in _list_parts(value):
            parts.setdefault(read_text_safely(part), part)
            parts.setdefault(read_repr_safely(part), part)
            if len(parts) > _PARTS_MAX:
                break
    parts.pop("", None)
    return parts


def _replace_parts_by_sizes(text: str, parts: dict[str, object]) -> str:
    """Return a text with the type and size of each part in its place, the longest parts first.

    It is gone through once, so that nothing is looked for in what has been put in.
    """
    present = sorted((each for each in parts if each in text), key=len, reverse=True)
    if not present:
        return text
    return re.sub(
        "|".join(map(_build_part_pattern, present)),
        lambda found: quote_value(parts[found[0]]),
        text,
    )


def _build_part_pattern(part: str) -> str:
    """Return the regular expression of a part: quoted text as it is, else as a whole word."""
    is_quoted = part[:1] in "'\"b" and part[-1:] in "'\""
    return re.escape(part) if is_quoted else rf"(?<!\w){re.escape(part)}(?!\w)"


def _describe_size(value: object) -> str | None:
    """Return a value's type and size, or less, if that is all that may be shown; else None."""
    shown = _SHOWN.get()
    if shown is ShownValues.FULL:
        return None
    if shown is ShownValues.NONE:
        return "a value"
    name = type(value).__name__
    if value is None or isinstance(value, bool):
        return name
    if isinstance(value, str | bytes | bytearray):
        return f"{name} of {len(value)} {_COUNTED.get(type(value), 'characters')}"
    if isinstance(value, list | tuple | Mapping | Set):
        return f"{name} of {len(value)}"
    return name


def _list_parts(value: Any) -> Iterator[object]:
    """Yield a value, its parts at any depth, and the parts that its bytes have as JSON."""
    waiting = [value]
    count = 0
    while waiting and count < _PARTS_MAX:
        part = waiting.pop()
        count += 1
        if part is None or isinstance(part, bool):
            continue
        if isinstance(part, bytes | bytearray):
            yield bytes(part)
            try:
                text = part.decode()
            except UnicodeDecodeError:
                continue
            waiting.append(text)
            try:
                decoded = json.loads(text)
            except ValueError:
                continue
            if decoded != text:
                waiting.append(decoded)
        elif isinstance(part, Mapping):
            waiting += part.values()
        elif isinstance(part, list | tuple | Set):
            waiting += part
        elif hasattr(part, "__dict__") and not isinstance(part, type):
            waiting += vars(part).values()
        elif hasattr(type(part), "__slots__") and not isinstance(part, str | int | float):
            yield part
            waiting += [getattr(part, each, None) for each in type(part).__slots__]
        else:
            yield part
