"""Turn values of a declared type into what JSON has, as `dataclass_builder` turns them back.

A type becomes one function, composed when its serde is created. It returns dicts, lists, texts and
numbers, and refuses a value that would come back as another one: a subclass, a tuple where a list
is declared, a time whose zone is more than an offset.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from state.shown_values import describe_value
from streams.serdes.dataclass_builder import (
    DICTS,
    LISTS,
    SETS,
    resolve_field_types,
    strip_type_hint,
)
from streams.serdes.json_exactness import NotExact, are_scalars, check_plain

Encode = Callable[[Any], Any]


def create_encoder(type_hint: Any) -> Encode:
    """Return the function that turns a value of a type into what JSON has.

    That function raises NotExact, naming the place in the value.
    """
    return _encoder_for(type_hint, {}) or check_plain


def _encoder_for(type_hint: Any, encoders: dict[type[Any], Encode]) -> Encode | None:
    """Return the function that encodes a type, or None for one that JSON has itself."""
    type_hint = strip_type_hint(type_hint)
    origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)
    if origin in (typing.Union, types.UnionType):
        return _optional_encoder(arguments, encoders)
    if origin in LISTS and arguments:
        element = _encoder_for(arguments[0], encoders)
        return None if element is None else _list_encoder(list, element)
    if type_hint is tuple or (origin is tuple and arguments):
        return _tuple_encoder(arguments, encoders)
    if origin in SETS and arguments:
        return _set_encoder(origin, _encoder_for(arguments[0], encoders) or check_plain)
    if origin in DICTS and arguments:
        return _dict_encoder(arguments, encoders)
    if not isinstance(type_hint, type):
        return None
    if dataclasses.is_dataclass(type_hint):
        return encoders.get(type_hint) or _add_dataclass_encoder(type_hint, encoders)
    if issubclass(type_hint, Enum):
        return _exact_encoder(type_hint, lambda member: check_plain(member.value))
    return _TEXT_ENCODERS.get(type_hint)


def _add_dataclass_encoder(cls: type[Any], encoders: dict[type[Any], Encode]) -> Encode:
    """Return the function that encodes a dataclass, and add it to `encoders`, as the builder is."""
    encoders[cls] = lambda value: encoders[cls](value)
    hints = resolve_field_types(cls)
    names = [each.name for each in dataclasses.fields(cls) if each.init]
    encodes = [(name, _encoder_for(hints[name], encoders)) for name in names]
    steps = [(name, encode) for name, encode in encodes if encode is not None]
    plain_names = [name for name, encode in encodes if encode is None]
    to_message, get_plain = _compile_reads(names, plain_names)

    def encode_dataclass(value: Any) -> Any:
        if type(value) is not cls:
            raise NotExact(f"needs {cls.__name__}, got {describe_value(value)}")
        message = to_message(value)
        name = ""
        try:
            for name, encode in steps:
                message[name] = encode(message[name])
            if not are_scalars(map(type, get_plain(value))):
                for name in plain_names:
                    check_plain(message[name])
        except NotExact as refusal:
            raise refusal.in_parent(f".{name}") from None
        return message

    encoders[cls] = encode_dataclass
    return encode_dataclass


def _compile_reads(
    names: Sequence[str], plain_names: Sequence[str]
) -> tuple[Callable[[Any], dict[str, Any]], Callable[[Any], tuple[Any, ...]]]:
    """Return functions that read all fields as a dict, and some as a tuple.

    They are composed as source, as the dataclass's own methods are: it takes half the time.
    """
    message = ", ".join(f"{name!r}: value.{name}" for name in names)
    values = "".join(f"value.{name}, " for name in plain_names)
    return eval(f"lambda value: {{{message}}}"), eval(f"lambda value: ({values})")


def _optional_encoder(
    type_hints: Sequence[Any], encoders: dict[type[Any], Encode]
) -> Encode | None:
    """Return the encoder of `X | None`; the builder has refused other unions of encoded types."""
    found = [encode for hint in type_hints if (encode := _encoder_for(hint, encoders))]
    if not found:
        return None
    (encode,) = found
    return lambda value: None if value is None else encode(value)


def _list_encoder(collection: type[Any], encode: Encode) -> Encode:
    def encode_list(value: Any) -> Any:
        if type(value) is not collection:
            raise NotExact(f"needs a {collection.__name__}, got {describe_value(value)}")
        found: list[Any] = []
        try:
            for each in value:
                found.append(encode(each))
        except NotExact as refusal:
            raise refusal.in_parent(f"[{len(found)}]") from None
        return found

    return encode_list


def _tuple_encoder(type_hints: Sequence[Any], encoders: dict[type[Any], Encode]) -> Encode:
    if not type_hints:
        return _list_encoder(tuple, check_plain)
    if len(type_hints) == 2 and type_hints[1] is Ellipsis:
        return _list_encoder(tuple, _encoder_for(type_hints[0], encoders) or check_plain)
    encodes = [_encoder_for(hint, encoders) or check_plain for hint in type_hints]

    def encode_tuple(value: Any) -> Any:
        if type(value) is not tuple or len(value) != len(encodes):
            raise NotExact(f"needs a tuple of {len(encodes)}, got {describe_value(value)}")
        found: list[Any] = []
        try:
            for encode, each in zip(encodes, value, strict=True):
                found.append(encode(each))
        except NotExact as refusal:
            raise refusal.in_parent(f"[{len(found)}]") from None
        return found

    return encode_tuple


def _set_encoder(collection: type[Any], encode: Encode) -> Encode:
    """Return the encoder of sets: sorted lists, so that equal sets have equal bytes."""
    encode_list = _list_encoder(collection, encode)

    def encode_set(value: Any) -> Any:
        found = encode_list(value)
        try:
            return sorted(found)
        except TypeError:  # of several types
            return sorted(found, key=repr)

    return encode_set


def _dict_encoder(type_hints: Sequence[Any], encoders: dict[type[Any], Encode]) -> Encode | None:
    encode_key = _encoder_for_key(type_hints[0])
    encode = _encoder_for(type_hints[1], encoders)
    if encode_key is None and encode is None:
        return None
    encode = encode or check_plain

    def encode_dict(value: Any) -> Any:
        if type(value) is not dict:
            raise NotExact(f"needs a dict, got {describe_value(value)}")
        key, found = None, {}
        try:
            for key, each in value.items():
                found[key if encode_key is None else encode_key(key)] = encode(each)
        except NotExact as refusal:
            raise refusal.in_parent(f"[{key!r}]") from None
        return found

    return encode_dict


def _encoder_for_key(type_hint: Any) -> Encode | None:
    """Return the function that turns a key of a declared type into text, or None for text."""
    type_hint = strip_type_hint(type_hint)
    if type_hint is int:
        return _exact_encoder(int, str)
    if isinstance(type_hint, type) and issubclass(type_hint, Enum):
        return _exact_encoder(type_hint, _name_member)
    return _TEXT_ENCODERS.get(type_hint) if isinstance(type_hint, type) else None


def _name_member(member: Enum) -> str:
    if type(member.value) is not str:
        raise NotExact(f"keys of JSON are str, and the value of {member} is not")
    return member.value


def _exact_encoder(cls: type[Any], encode: Encode) -> Encode:
    def encode_exact(value: Any) -> Any:
        if type(value) is not cls:
            raise NotExact(f"needs {cls.__name__}, got {describe_value(value)}")
        return encode(value)

    return encode_exact


def _format_time(value: datetime | time) -> str:
    """Return a time in ISO 8601, or raise NotExact for one that this does not say completely."""
    if value.fold or type(value.tzinfo) not in (types.NoneType, timezone):
        raise NotExact(
            f"{describe_value(value)} would come back without its zone's name and fold: give it "
            "an offset, as .astimezone(datetime.UTC) does"
        )
    return value.isoformat()


_TEXT_ENCODERS: dict[type[Any], Encode] = {
    datetime: _exact_encoder(datetime, _format_time),
    date: _exact_encoder(date, date.isoformat),
    time: _exact_encoder(time, _format_time),
    UUID: _exact_encoder(UUID, str),
    Decimal: _exact_encoder(Decimal, str),
}
