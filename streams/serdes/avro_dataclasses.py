"""Convert dataclasses to messages of Avro, as `dataclass_builder` builds them from messages.

A type becomes one function, composed when its serde is created. It makes the dicts and lists of a
message, and refuses a value that would come back as another one. Numbers, texts, times and the like
are left to the schema. A dataclass of a union gets the name of its record.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from enum import Enum
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from state.shown_values import describe_value
from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.constructed_values import create_checked_encoder
from streams.serdes.dataclass_builder import create_builder
from streams.serdes.declared_types import (
    DICTS,
    LISTS,
    SETS,
    is_union,
    list_init_fields,
    resolve_field_types,
    strip_type_hint,
)
from streams.serdes.message_schemas import DataclassMismatch

Convert = Callable[[Any], Any]
ToMessage: TypeAlias = Convert
FromMessage: TypeAlias = Convert


def create_conversions(declared: Any) -> tuple[ToMessage, FromMessage]:
    """Return the functions that turn values of a declared type into messages, and back.

    The type is a dataclass, a union of dataclasses, or a dict of dataclasses by the names of their
    records. Raises TypeError for another type, and for a field whose type a message can't tell.
    """
    hint, names = declared, {}
    if isinstance(declared, Mapping):
        names = {cls: name for name, cls in declared.items()}
        hint = reduce(or_, names) if names else None
    members = typing.get_args(hint) if is_union(hint) else (hint,)
    if not all(_is_dataclass_type(each) for each in members):
        raise TypeError(
            f"type= takes a dataclass, got {declared!r}. It may be a union of dataclasses, or a "
            "dict of them by the full names of their records"
        )
    if isinstance(declared, Mapping) and len(members) != len(declared):
        raise TypeError(f"type= takes a dataclass once, got {declared!r}")
    build = create_builder(hint, build_unions=_NamedBuilders(names).create)
    encode = _Encoders(names).find(hint)
    assert build is not None
    assert encode is not None
    return create_checked_encoder(hint, encode, build, deepcopy, AvroMismatch), build


def describe_declared(declared: Any) -> str:
    """Return the name of a declared type, which becomes part of its serde's name."""
    members = declared.values() if isinstance(declared, Mapping) else typing.get_args(declared)
    return " | ".join(each.__name__ for each in members or (declared,))


def _is_dataclass_type(hint: Any) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


class _NamedBuilders:
    """Creates the builders of unions of dataclasses, whose messages have the names of records."""

    def __init__(self, names: Mapping[type[Any], str]) -> None:
        self._names = names
        self._builders: dict[type[Any], Convert | None] = {}

    def create(self, type_hints: Sequence[Any]) -> Convert:
        """Return the function that builds a dataclass from the pair of a name and fields.

        Other values of the union are taken as they are.
        """
        by_name = {
            self._names.get(each, each.__name__): each
            for each in type_hints
            if _is_dataclass_type(each)
        }
        is_closed = all(_is_dataclass_type(each) or each is type(None) for each in type_hints)
        expected = " or ".join(by_name)

        def build_named(message: Any) -> Any:
            if type(message) is not tuple:
                if is_closed and not (message is None and type(None) in type_hints):
                    raise DataclassMismatch(f"needs {expected}, got {describe_value(message)}")
                return message
            name, fields = message
            cls = by_name.get(name) or by_name.get(name.rpartition(".")[2])
            if cls is None:
                raise DataclassMismatch(f"needs {expected}, got {name}")
            return self._build_value(cls, fields)

        return build_named

    def _build_value(self, cls: type[Any], fields: Any) -> Any:
        if cls not in self._builders:
            self._builders[cls] = create_builder(cls, build_unions=self.create)
        build = self._builders[cls]
        assert build is not None
        return build(fields)


class _Encoders:
    """Composes the functions of types; a dataclass that refers to itself finds its own there."""

    def __init__(self, names: Mapping[type[Any], str]) -> None:
        self._names = names
        self._dataclasses: dict[type[Any], list[Convert]] = {}

    def find(self, type_hint: Any) -> Convert | None:
        """Return the function that encodes a type, or None for one that the schema checks."""
        hint = strip_type_hint(type_hint)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if is_union(hint):
            return self._create_union_encoder(arguments)
        if origin in LISTS and arguments:
            element = self.find(arguments[0])
            return (
                None
                if element is None
                else _create_collection_encoder(list, [element], repeats=True)
            )
        if hint is tuple or (origin is tuple and arguments):
            return self._create_tuple_encoder(arguments)
        if origin in SETS and arguments:
            return _create_collection_encoder(origin, [self.find(arguments[0])], repeats=True)
        if origin in DICTS and arguments:
            return _create_dict_encoder(self.find(arguments[1]))
        if not isinstance(hint, type):
            return None
        if dataclasses.is_dataclass(hint):
            return self._create_dataclass_encoder(hint)
        return _create_enum_encoder(hint) if issubclass(hint, Enum) else None

    def _create_tuple_encoder(self, type_hints: Sequence[Any]) -> Convert:
        if not type_hints:
            return _create_collection_encoder(tuple, [None], repeats=True)
        if len(type_hints) == 2 and type_hints[1] is Ellipsis:
            return _create_collection_encoder(tuple, [self.find(type_hints[0])], repeats=True)
        return _create_collection_encoder(
            tuple, [self.find(each) for each in type_hints], repeats=False
        )

    def _create_union_encoder(self, type_hints: Sequence[Any]) -> Convert | None:
        """Return the function for a union: of some type and None, or of several dataclasses."""
        found = {each: self.find(each) for each in type_hints if each is not types.NoneType}
        if len(found) == 1:
            (encode,) = found.values()
            if encode is None:
                return None
            return lambda value: None if value is None else encode(value)
        named = {
            each: (self._names.get(each, each.__name__), encode)
            for each, encode in found.items()
            if encode is not None and _is_dataclass_type(each)
        }
        if not named:
            return None
        return _create_named_encoder(named, is_closed=len(named) == len(found))

    def _create_dataclass_encoder(self, cls: type[Any]) -> Convert:
        if cls in self._dataclasses:
            later = self._dataclasses[cls]
            return lambda value: later[0](value)
        self._dataclasses[cls] = []
        hints = resolve_field_types(cls)
        names = [each.name for each in list_init_fields(cls)]
        encodes = [(name, self.find(hints[name])) for name in names]
        found = _create_fields_encoder(cls, encodes)
        self._dataclasses[cls].append(found)
        return found


def _create_fields_encoder(
    cls: type[Any], encodes: Sequence[tuple[str, Convert | None]]
) -> Convert:
    def encode_dataclass(value: Any) -> Any:
        if type(value) is not cls:
            raise AvroMismatch(f"needs {cls.__name__}")
        found, name = {}, ""
        try:
            for name, encode in encodes:
                each = getattr(value, name)
                found[name] = each if encode is None else encode(each)
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f".{name}") from None
        return found

    return encode_dataclass


def _create_named_encoder(named: Mapping[Any, tuple[str, Convert]], *, is_closed: bool) -> Convert:
    expected = " or ".join(each.__name__ for each in named)

    def encode_named(value: Any) -> Any:
        if type(value) in named:
            name, encode = named[type(value)]
            return name, encode(value)
        if is_closed and value is not None:
            raise AvroMismatch(f"needs {expected}")
        return value

    return encode_named


def _create_collection_encoder(
    collection: type[Any], encodes: Sequence[Convert | None], *, repeats: bool
) -> Convert:
    """Return the function that converts a list, tuple or set by the functions of its elements."""

    def encode_elements(value: Any) -> Any:
        if type(value) is not collection or not (repeats or len(value) == len(encodes)):
            raise AvroMismatch(f"needs a {collection.__name__}, got {describe_value(value)}")
        found: list[Any] = []
        try:
            for each in value:
                encode = encodes[0 if repeats else len(found)]
                found.append(each if encode is None else encode(each))
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f"[{len(found)}]") from None
        return sorted(found, key=repr) if collection in SETS else found

    return encode_elements


def _create_dict_encoder(encode: Convert | None) -> Convert | None:
    if encode is None:
        return None

    def encode_dict(value: Any) -> Any:
        if type(value) is not dict:
            raise AvroMismatch(f"needs a dict, got {describe_value(value)}")
        found, key = {}, None
        try:
            for key, each in value.items():
                found[key] = encode(each)
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f"[{key!r}]") from None
        return found

    return encode_dict


def _create_enum_encoder(cls: type[Any]) -> Convert:
    def encode_member(value: Any) -> Any:
        if type(value) is not cls:
            raise AvroMismatch(f"needs {cls.__name__}, got {describe_value(value)}")
        return value.value

    return encode_member
