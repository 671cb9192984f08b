"""Write only what JSON gives back as it was, and find what it doesn't.

orjson writes more than JSON can give back: a datetime becomes a text, a tuple a list, NaN null. So
each value is checked beside orjson, which stays the fast path. Types are compared container by
container, in C where a container holds nothing but scalars. NaN and infinities are only looked for
in a value whose JSON has a null. Integers of more than 64 bits, which orjson refuses to write and
reads as floats, are left to Python's json, which keeps all digits.
"""

from __future__ import annotations

import json
import math
import re
from itertools import chain
from typing import Any

import orjson

from state.shown_values import describe_value

_SCALARS = frozenset({str, int, float, bool, type(None)})
_are_dicts = frozenset({dict}).issuperset
are_scalars = _SCALARS.issuperset
"""Tells whether types are those of scalars that JSON gives back."""
_LONG_DIGITS = b"0" * 20
_DIGITS = bytes(48 if chr(byte) in "0123456789-" else 32 for byte in range(256))
_LARGE_INTEGER = re.compile(rb"(?:^|[\s:\[,])-?\d{19}")
"""Matches integers of more than 64 bits that are no part of a text, and some shorter ones."""
_MAX_BITS = 1023
"""The size of integers that orjson reads as floats, and not as infinity, which it refuses."""
MAX_DEPTH = 254
"""The depth of nesting to which orjson writes."""

_REMEDY = (
    "Declare the type with serdes.json(Type), or convert it before; serdes.json(lossy=True) writes "
    "what comes back as another type"
)


class NotExact(TypeError):
    """Reports a value that JSON would not give back as it was, with its place in the object."""

    def __init__(self, reason: str, path: str = "", remedy: str = "") -> None:
        super().__init__(f"value{path}: {reason}" + (f". {remedy}" if remedy else ""))
        self.reason, self.path, self.remedy = reason, path, remedy

    def with_parent_step(self, step: str) -> NotExact:
        """Return the refusal as seen from the enclosing object; `step` is .field or [index]."""
        return NotExact(self.reason, step + self.path, self.remedy)

    def with_remedy(self, remedy: str) -> NotExact:
        """Return the refusal with what to do for a serde of another name than serdes.json."""
        return NotExact(self.reason, self.path, remedy if self.remedy else "")


def serialize_exactly(value: Any) -> bytes:
    """Return the JSON of dicts with text keys, lists, texts, numbers, booleans and None.

    Raises NotExact for anything else, also for NaN, infinities, lone surrogates and subclasses.
    """
    try:
        data = orjson.dumps(value)
    except TypeError:
        return _serialize_slowly(value)
    if not _is_plain(value):
        raise _create_refusal(value)
    if b"null" in data and not _is_finite(value):
        raise _create_refusal(value)
    return data


def serialize_plain(value: Any) -> bytes:
    """Return the JSON of a value whose types `require_plain` has accepted, or raise NotExact."""
    try:
        data = orjson.dumps(value)
    except TypeError:
        return _serialize_slowly(value)
    if b"null" in data and not _is_finite(value):
        raise _create_refusal(value)
    return data


def copy_plain(value: Any) -> Any:
    """Return a plain value as it is read back, or raise NotExact."""
    return deserialize_exactly(serialize_plain(value))


def require_plain(value: Any) -> Any:
    """Return the value, or raise NotExact where a type is in it that JSON does not give back."""
    try:
        is_plain = _is_plain(value)
    except RecursionError:
        is_plain = False
    if not is_plain:
        raise _create_refusal(value)
    return value


def deserialize_exactly(data: bytes) -> Any:
    """Return the value of a JSON text; integers keep all of their digits.

    Raises ValueError for what is no JSON in UTF-8, and for a number with a point or an exponent
    that is too large for a float.
    """
    value = orjson.loads(data)
    if type(data) is not bytes:
        data = bytes(data)
    # A run of 20 digits and minus signs: no other integer has more than 64 bits.
    if _LONG_DIGITS in data.translate(_DIGITS) and _LARGE_INTEGER.search(data):
        try:
            return json.loads(data)
        except RecursionError:
            raise ValueError("an integer of more than 64 bits is nested too deeply") from None
    return value


def _is_plain(value: Any) -> bool:
    """Return whether a value holds no types but those that JSON gives back."""
    kind = type(value)
    if kind is dict:
        parts = value.values()
    elif kind is list:
        parts = value
        if value and type(value[0]) is dict and _are_dicts(map(type, value)):
            parts = list(chain.from_iterable(map(dict.values, value)))  # all of them at once
    else:
        return kind in _SCALARS
    if are_scalars(map(type, parts)):
        return True
    for part in parts:  # noqa: SIM110  a generator for each container would cost as much again
        if type(part) not in _SCALARS and not _is_plain(part):
            return False
    return True


def _is_finite(value: Any) -> bool:
    """Return whether a plain value holds neither NaN nor an infinity."""
    kind = type(value)
    if kind is dict:
        parts = value.values()
    elif kind is list:
        parts = value
    else:
        return kind is not float or math.isfinite(value)
    for part in parts:
        kind = type(part)
        if kind is float:
            if not math.isfinite(part):
                return False
        elif (kind is dict or kind is list) and not _is_finite(part):
            return False
    return True


def _create_refusal(value: Any) -> NotExact:
    """Return the refusal of a value that JSON does not give back, with the place if it is found."""
    return _find_refusal(value) or NotExact("JSON does not give it back as it was")


def _serialize_slowly(value: Any) -> bytes:
    """Return the JSON of a value that orjson refuses for its integers, or raise NotExact."""
    if refusal := _find_refusal(value):
        raise refusal from None
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _find_refusal(value: Any, depth: int = 0) -> NotExact | None:
    """Return the part of a value that JSON would read back as another; None if there is none."""
    kind = type(value)
    if kind in _SCALARS:
        return _find_scalar_refusal(value)
    if kind not in (dict, list):
        return NotExact(f"JSON gives back no {describe_value(value)}", remedy=_REMEDY)
    if depth == MAX_DEPTH:
        return NotExact(f"it is nested more than {MAX_DEPTH} deep, or holds itself")
    if kind is list:
        for index, part in enumerate(value):
            if refusal := _find_refusal(part, depth + 1):
                return refusal.with_parent_step(f"[{index}]")
        return None
    for key, part in value.items():
        if type(key) is not str:
            return NotExact(f"keys of JSON are str, got {describe_value(key)}", remedy=_REMEDY)
        if refusal := _find_scalar_refusal(key):
            return refusal
        if refusal := _find_refusal(part, depth + 1):
            return refusal.with_parent_step(describe_step(key))
    return None


def describe_step(key: Any) -> str:
    """Return a key or an index as a part of a path: .field, ['a key'] or [index]; its beginning."""
    return f".{key:.200}" if isinstance(key, str) and key.isidentifier() else f"[{key!r:.200}]"


def _find_scalar_refusal(value: Any) -> NotExact | None:
    """Explain why JSON would read a text or number back as another; None if it would not."""
    if type(value) is int and value.bit_length() > _MAX_BITS:
        return NotExact(f"orjson reads integers of {_MAX_BITS} bits, got {value.bit_length()}")
    if type(value) is float and not math.isfinite(value):
        return NotExact(f"JSON has no {value}: write None, or a text")
    if type(value) is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            return NotExact(f"UTF-8 has no lone surrogates, got {describe_value(value)}")
    return None
