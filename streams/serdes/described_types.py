"""Describe the type of the messages that a serde writes and reads, as plain data to be compared.

`streams.topology.type_compatibility` compares two of them, as those of two versions of an
application. The description of a type that holds itself has a reference in place of itself.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from pydantic import TypeAdapter

from streams.serdes.declared_types import (
    DICTS,
    LISTS,
    SETS,
    TEXT_TYPES,
    describe_type,
    is_union,
    list_init_fields,
    resolve_field_types,
    strip_type_hint,
)
from streams.serdes.unknown_fields import Unknown, find_unknown_field

Kind = Literal[
    "any",
    "scalar",
    "record",
    "list",
    "set",
    "tuple",
    "map",
    "enum",
    "union",
    "all",
    "reference",
    "hash",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedType:
    """Describes a type by its kind.

    kind        name                    items                       symbols
    any         the type's, if any
    scalar      the type's
    record      the type's
    list, set                           the element's
    tuple                               those of the places
    map                                 the key's and the value's
    enum        the type's                                          its values
    union                               the members'
    all                                 all that a message matches
    reference   that of a record around
    hash                                what is hashed, by its bytes

    `fields` are a record's, by the names that messages have for them, and `unknown` says what
    becomes of others. `must_be_named` tells that messages are read by records of the same name
    alone, or of one of the `former_names`. `rules` is what else a message must match, as text to
    compare; `identity` what else its bytes depend on, as the schema whose id they begin with.
    """

    kind: Kind
    name: str = ""
    items: tuple[DescribedType, ...] = ()
    symbols: tuple[str, ...] = ()
    fields: dict[str, DescribedField] = field(default_factory=dict)
    unknown: Unknown = "ignore"
    must_be_named: bool = False
    former_names: tuple[str, ...] = ()
    rules: str = ""
    identity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedField:
    """Describes a field: its type, its names, and whether a reader or a writer may do without it.

    `has_default`: a message without it is read. `is_optional`: a message may be written without it.
    `label` is its name for people, where messages have another; `aliases` are other names that it
    is read by.
    """

    type: DescribedType
    has_default: bool = False
    is_optional: bool = False
    label: str = ""
    aliases: tuple[str, ...] = ()


_ADAPTER = TypeAdapter(DescribedType)


def type_to_plain(described: DescribedType | None) -> dict[str, Any] | None:
    """Return a described type as what JSON has, without the defaults of its fields."""
    if described is None:
        return None
    plain: dict[str, Any] = _ADAPTER.dump_python(described, mode="json", exclude_defaults=True)
    return plain


def type_from_plain(plain: Any) -> DescribedType | None:
    """Return the described type that `type_to_plain` was given. Raises ValueError for another."""
    return None if plain is None else _ADAPTER.validate_python(plain)


def describe_declared_type(type_hint: Any, unknown: Unknown) -> DescribedType:
    """Describe the JSON of a declared type: a dataclass, or another that `serdes.json` takes."""
    return _describe_within(type_hint, unknown, ())


def describe_tuple_of_types(*described: DescribedType | None) -> DescribedType | None:
    """Describe a message that consists of parts of these types; None if no type is known."""
    if not any(described):
        return None
    items = tuple(each or DescribedType(kind="any") for each in described)
    return DescribedType(kind="tuple", items=items)


def describe_hash_of_type(described: DescribedType | None) -> DescribedType | None:
    """Describe the hash of an object's bytes; None if the object's type is not known."""
    if described is None:
        return None
    # Types with their fields in another order are equal, and their bytes are not.
    order = json.dumps(type_to_plain(described))
    return DescribedType(kind="hash", items=(described,), symbols=(order,))


def describe_all_of_known_types(*described: DescribedType | None) -> DescribedType | None:
    """Describe a message that must match several types at once; None if no type is known."""
    known = tuple(each for each in described if each is not None)
    if len(known) < 2:
        return known[0] if known else None
    return DescribedType(kind="all", items=known)


def _describe_within(
    type_hint: Any, unknown: Unknown, enclosing: tuple[type[Any], ...]
) -> DescribedType:
    """Describe a type within dataclasses."""
    type_hint = strip_type_hint(type_hint)
    origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)

    def describe_items(*hints: Any) -> tuple[DescribedType, ...]:
        return tuple(_describe_within(each, unknown, enclosing) for each in hints)

    if (kind := _find_collection_kind(type_hint)) is not None:
        hints = arguments[:1] if kind in ("list", "set") else arguments
        return DescribedType(kind=kind, items=describe_items(*(hints or (Any,))))
    if origin is typing.Literal:
        return DescribedType(kind="enum", name="Literal", symbols=tuple(map(repr, arguments)))
    if type_hint is None or type_hint is type(None):
        return DescribedType(kind="scalar", name="None")
    if not isinstance(type_hint, type) or type_hint is object:
        return DescribedType(kind="any")
    if dataclasses.is_dataclass(type_hint):
        return _describe_dataclass(type_hint, unknown, enclosing)
    if issubclass(type_hint, Enum):
        values = tuple(repr(each.value) for each in type_hint)
        return DescribedType(kind="enum", name=type_hint.__name__, symbols=values)
    is_scalar = type_hint in (str, int, float, bool, *TEXT_TYPES)
    return DescribedType(kind="scalar" if is_scalar else "any", name=describe_type(type_hint))


def _find_collection_kind(type_hint: Any) -> Kind | None:
    """Return the kind of a type with items; None for another."""
    origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)
    if is_union(type_hint):
        return "union"
    if type_hint is tuple or (origin is tuple and arguments[1:] == (...,)):
        return "list"
    if origin is tuple:
        return "tuple"
    if not arguments:
        return None
    return "list" if origin in LISTS else "set" if origin in SETS else _find_mapping_kind(origin)


def _find_mapping_kind(origin: Any) -> Kind | None:
    return "map" if origin in DICTS else None


def _describe_dataclass(
    cls: type[Any], unknown: Unknown, enclosing: tuple[type[Any], ...]
) -> DescribedType:
    if cls in enclosing:
        return DescribedType(kind="reference", name=cls.__name__)
    hints, rest, missing = resolve_field_types(cls), find_unknown_field(cls), dataclasses.MISSING
    fields = {
        each.name: DescribedField(
            type=_describe_within(hints[each.name], unknown, (*enclosing, cls)),
            has_default=each.default is not missing or each.default_factory is not missing,
        )
        for each in list_init_fields(cls)
        if each.name != rest
    }
    return DescribedType(kind="record", name=cls.__name__, fields=fields, unknown=unknown)
