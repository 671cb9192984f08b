"""Turn values of a declared type into what JSON has, as `dataclass_builder` turns them back.

A type becomes one function, composed when its serde is created. It returns dicts, lists, texts and
numbers, and refuses a value that would come back as another one: a subclass, a tuple where a list
is declared, a text in a field of numbers, a time whose zone is more than an offset.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

from state.shown_values import describe_value
from streams.serdes.declared_types import (
    DICTS,
    LISTS,
    SETS,
    describe_type,
    find_scalar_kinds,
    is_union,
    list_init_fields,
    resolve_field_types,
    strip_type_hint,
)
from streams.serdes.json_exactness import NotExact, require_plain
from streams.serdes.unknown_fields import Unknown, find_unknown_field, get_unknown_fields

ReadAsDict: TypeAlias = Callable[[Any], dict[str, Any]]
ReadAsTuple: TypeAlias = Callable[[Any], tuple[Any, ...]]

Encode = Callable[[Any], Any]
Kinds = frozenset[type]

_SECOND = timedelta(seconds=1)
_SEEN_MAX = 256
"""How many combinations of the classes of a dataclass's scalars are remembered."""


def create_encoder(type_hint: Any, unknown: Unknown = "refuse") -> Encode:
    """Return the function that turns a value of a type into what JSON has.

    With `unknown="keep"` the fields that were kept with a dataclass are written too. The function
    raises NotExact, naming the place in the value.
    """
    return _EncoderComposer(unknown).compose(type_hint)


class _EncoderComposer:
    """Composes the JSON encoders of types, also of dataclasses that refer to themselves."""

    def __init__(self, unknown: Unknown) -> None:
        self._encoders: dict[type[Any], Encode] = {}
        self._unknown = unknown

    def compose(self, type_hint: Any) -> Encode:
        """Return the function that encodes a type."""
        type_hint = strip_type_hint(type_hint)
        kinds = find_scalar_kinds(type_hint)
        if kinds is not None:
            return _create_scalar_encoder(kinds, type_hint)
        origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)
        if is_union(type_hint):
            return self._compose_union(type_hint)
        if origin is typing.Literal:
            return _create_literal_encoder(arguments)
        if origin in LISTS and arguments:
            kinds = find_scalar_kinds(arguments[0]) or frozenset()
            return _create_list_encoder(list, self.compose(arguments[0]), kinds)
        if type_hint is tuple or (origin is tuple and arguments):
            return self._compose_tuple(arguments)
        if origin in SETS and arguments:
            return _create_set_encoder(origin, self.compose(arguments[0]))
        if origin in DICTS and arguments:
            return _create_dict_encoder(
                _create_key_encoder(arguments[0]),
                self.compose(arguments[1]),
                find_scalar_kinds(arguments[1]),
            )
        if not isinstance(type_hint, type) or type_hint is object:
            return require_plain
        if dataclasses.is_dataclass(type_hint):
            return self._encoders.get(type_hint) or self._compose_dataclass_encoder(type_hint)
        if issubclass(type_hint, Enum):
            return _create_exact_encoder(type_hint, lambda member: require_plain(member.value))
        return _TEXT_ENCODERS.get(type_hint) or _create_plain_encoder(type_hint)

    def _compose_dataclass_encoder(self, cls: type[Any]) -> Encode:
        """Return the function that encodes a dataclass, and add it to the encoders."""
        self._encoders[cls] = lambda value: self._encoders[cls](value)
        hints, rest = resolve_field_types(cls), find_unknown_field(cls)
        names = [each.name for each in list_init_fields(cls) if each.name != rest]
        scalars = [name for name in names if find_scalar_kinds(hints[name]) is not None]
        checks = {name: self.compose(hints[name]) for name in scalars}
        steps = [(name, self.compose(hints[name])) for name in names if name not in checks]
        to_message, get_scalars = _compile_field_readers(names, scalars)
        seen = set[tuple[type, ...]]()

        def encode_dataclass(value: Any) -> Any:
            if type(value) is not cls:
                raise NotExact(f"needs {cls.__name__}, got {describe_value(value)}")
            message = to_message(value)
            name = ""
            try:
                for name, encode in steps:
                    message[name] = encode(message[name])
                # Whether scalars fit depends on their classes alone.
                kinds = tuple(map(type, get_scalars(value)))
                if kinds not in seen:
                    for name, check in checks.items():
                        check(message[name])
                    if len(seen) < _SEEN_MAX:
                        seen.add(kinds)
            except NotExact as refusal:
                raise refusal.with_parent_step(f".{name}") from None
            return message

        encode: Encode = encode_dataclass
        if self._unknown == "keep":
            encode = _add_unknown_fields(encode_dataclass, rest)
        self._encoders[cls] = encode
        return encode

    def _compose_union(self, type_hint: Any) -> Encode:
        """Return the encoder of a union; the builder has refused unions of several built types."""
        others = [each for each in typing.get_args(type_hint) if each is not type(None)]
        takes_none = len(others) < len(typing.get_args(type_hint))
        encode = self.compose(others[0])
        if len(others) > 1:
            encode = _create_union_encoder([self.compose(each) for each in others], type_hint)
        return (lambda value: None if value is None else encode(value)) if takes_none else encode

    def _compose_tuple(self, type_hints: Sequence[Any]) -> Encode:
        if not type_hints:
            return _create_list_encoder(tuple, require_plain)
        if len(type_hints) == 2 and type_hints[1] is Ellipsis:
            return _create_list_encoder(tuple, self.compose(type_hints[0]))
        return _create_tuple_encoder([self.compose(hint) for hint in type_hints])


def _add_unknown_fields(encode: Encode, rest: str | None) -> Encode:
    """Return an encoder that also writes the fields which a dataclass does not have."""

    def encode_with_unknown(value: Any) -> Any:
        message = encode(value)
        unknown = get_unknown_fields(value) if rest is None else getattr(value, rest)
        try:
            if type(unknown) is not dict:
                raise NotExact(f"needs a dict, got {describe_value(unknown)}")
            if unknown:
                require_plain(unknown)
                if both := message.keys() & unknown.keys():
                    raise NotExact(f"has {sorted(both)}, which are fields of their own")
                message.update(unknown)
        except NotExact as refusal:
            raise refusal.with_parent_step("" if rest is None else f".{rest}") from None
        return message

    return encode_with_unknown


def _compile_field_readers(
    names: Sequence[str], scalar_names: Sequence[str]
) -> tuple[ReadAsDict, ReadAsTuple]:
    """Return functions that read all fields as a dict, and some as a tuple.

    They are composed as source, as the dataclass's own methods are: it takes half the time.
    """
    message = ", ".join(f"{name!r}: value.{name}" for name in names)
    values = "".join(f"value.{name}, " for name in scalar_names)
    # Only names of fields are in it, which Python has accepted as identifiers.
    read_message = eval(f"lambda value: {{{message}}}")  # nosec B307
    return read_message, eval(f"lambda value: ({values})")  # nosec B307


def _create_scalar_encoder(kinds: Kinds, type_hint: Any) -> Encode:
    """Return an encoder that passes values of the given classes on unchanged."""
    need = describe_type(type_hint)

    def check_scalar(value: Any) -> Any:
        if type(value) not in kinds:
            require_plain(value)
            raise NotExact(f"needs {need}, got {describe_value(value)}")
        return value

    return check_scalar


def _create_plain_encoder(cls: type[Any]) -> Encode:
    """Create the encoder of a class without declared parts, such as `dict` and `list`."""
    base: Any = dict if typing.is_typeddict(cls) else cls

    def check_instance(value: Any) -> Any:
        require_plain(value)
        try:
            is_instance = isinstance(value, base)
        except TypeError:  # a protocol that says nothing at run time
            is_instance = True
        if not is_instance:
            raise NotExact(f"needs {cls.__name__}, got {describe_value(value)}")
        return value

    return check_instance


def _create_literal_encoder(values: Sequence[Any]) -> Encode:
    accepted = [(type(each), each) for each in values]

    def check_literal(value: Any) -> Any:
        if (type(value), value) not in accepted:
            raise NotExact(
                f"needs one of {', '.join(map(repr, values))}, got {describe_value(value)}"
            )
        return value

    return check_literal


def _create_union_encoder(encoders: Sequence[Encode], type_hint: Any) -> Encode:
    """Return an encoder of a union, which encodes a value by the first member that takes it."""
    need = describe_type(type_hint)

    def encode_first(value: Any) -> Any:
        require_plain(value)
        for encode in encoders:
            try:
                return encode(value)
            except NotExact:
                continue
        raise NotExact(f"needs {need}, got {describe_value(value)}")

    return encode_first


def _create_list_encoder(
    collection: type[Any], encode: Encode, kinds: Kinds = frozenset()
) -> Encode:
    """Return the encoder of collections; `kinds` are the classes of elements that stay."""

    def encode_list(value: Any) -> Any:
        if type(value) is not collection:
            raise NotExact(f"needs a {collection.__name__}, got {describe_value(value)}")
        if kinds and kinds.issuperset(map(type, value)):
            return value
        found: list[Any] = []
        try:
            for each in value:
                found.append(encode(each))
        except NotExact as refusal:
            raise refusal.with_parent_step(f"[{len(found)}]") from None
        return found

    return encode_list


def _create_tuple_encoder(encodes: Sequence[Encode]) -> Encode:
    def encode_tuple(value: Any) -> Any:
        if type(value) is not tuple or len(value) != len(encodes):
            raise NotExact(f"needs a tuple of {len(encodes)}, got {describe_value(value)}")
        found: list[Any] = []
        try:
            for encode, each in zip(encodes, value, strict=True):
                found.append(encode(each))
        except NotExact as refusal:
            raise refusal.with_parent_step(f"[{len(found)}]") from None
        return found

    return encode_tuple


def _create_set_encoder(collection: type[Any], encode: Encode) -> Encode:
    """Return the encoder of sets: sorted lists, so that equal sets have equal bytes."""
    encode_list = _create_list_encoder(collection, encode)

    def encode_set(value: Any) -> Any:
        found = encode_list(value)
        try:
            return sorted(found)
        except TypeError:  # of several types
            return sorted(found, key=repr)

    return encode_set


def _create_dict_encoder(encode_key: Encode | None, encode: Encode, kinds: Kinds | None) -> Encode:
    """Return the encoder of dicts; `kinds` are the classes of values that stay."""

    def encode_dict(value: Any) -> Any:
        if type(value) is not dict:
            raise NotExact(f"needs a dict, got {describe_value(value)}")
        if encode_key is None and kinds and kinds.issuperset(map(type, value.values())):
            return value
        key, found = None, {}
        try:
            for key, each in value.items():
                found[key if encode_key is None else encode_key(key)] = encode(each)
        except NotExact as refusal:
            raise refusal.with_parent_step(f"[{key!r:.200}]") from None
        if len(found) != len(value):  # as of two NaN, which are unequal keys with one text
            raise NotExact(f"several of its keys are one text, got {describe_value(value)}")
        return found

    return encode_dict


def _create_key_encoder(type_hint: Any) -> Encode | None:
    """Return the function that turns a key of a declared type into text, or None for text."""
    type_hint = strip_type_hint(type_hint)
    if type_hint is int:
        return _create_exact_encoder(int, str)
    if isinstance(type_hint, type) and issubclass(type_hint, Enum):
        return _create_exact_encoder(type_hint, _require_text_value)
    return _TEXT_ENCODERS.get(type_hint) if isinstance(type_hint, type) else None


def _require_text_value(member: Enum) -> str:
    if type(member.value) is not str:
        raise NotExact(f"keys of JSON are str, and the value of {member} is not")
    return member.value


def _create_exact_encoder(cls: type[Any], encode: Encode) -> Encode:
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
    text = value.isoformat()
    offset = value.utcoffset()
    if offset and not offset // _SECOND and type(value).fromisoformat(text) != value:
        # Python reads an offset of less than a second as none.
        raise NotExact(f"{describe_value(value)} would come back with another offset")
    return text


_TEXT_ENCODERS: dict[type[Any], Encode] = {
    datetime: _create_exact_encoder(datetime, _format_time),
    date: _create_exact_encoder(date, date.isoformat),
    time: _create_exact_encoder(time, _format_time),
    UUID: _create_exact_encoder(UUID, str),
    Decimal: _create_exact_encoder(Decimal, str),
}
