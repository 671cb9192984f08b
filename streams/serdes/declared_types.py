"""Tell what the declared types of messages are: those that a message has, and those built from it.

Both directions are composed of this: `message_schemas` for what is read, `json_types` for what is
written.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from typing_extensions import TypeAliasType

TEXT_TYPES = (datetime, date, time, UUID, Decimal)
"""The types that JSON writes as text."""
LISTS = (list, Sequence)
DICTS = (dict, Mapping)
SETS = (set, frozenset)

_ALIAS_TYPES = (TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType))
"""The classes of `type X = ...`: Python's own since 3.12, and that of earlier versions."""
_KINDS: dict[Any, frozenset[type]] = {
    str: frozenset({str}),
    int: frozenset({int}),
    # An int is a float where one is declared, as in Python's own type system, and stays an int.
    float: frozenset({float, int}),
    bool: frozenset({bool}),
    None: frozenset({type(None)}),
    type(None): frozenset({type(None)}),
}


def strip_type_hint(type_hint: Any) -> Any:
    """Return the type that an annotated or final type, an alias or a NewType stands for."""
    while True:
        if typing.get_origin(type_hint) in (typing.Annotated, typing.Final):
            type_hint = typing.get_args(type_hint)[0]
        elif isinstance(type_hint, typing.NewType):
            type_hint = type_hint.__supertype__
        elif isinstance(type_hint, _ALIAS_TYPES):
            type_hint = type_hint.__value__
        else:
            return type_hint


def is_union(type_hint: Any) -> bool:
    """Return whether a type is a union, as `int | None` is."""
    return typing.get_origin(type_hint) in (typing.Union, types.UnionType)


def describe_type(type_hint: Any) -> str:
    """Return the name of a type, as Order or list[Order], for the name of its serde."""
    if typing.get_origin(type_hint) is None and isinstance(type_hint, type):
        return type_hint.__name__
    arguments = typing.get_args(type_hint)
    named = re.sub(r"\b\w+\.", "", str(type_hint))
    return named if arguments else str(type_hint)


def resolve_field_types(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields; one whose default is None takes None too.

    Raises TypeError for a type that is unknown.
    """
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{cls.__name__}: {error}, which is the type of a field: define it, and outside of "
            "functions, before the serde"
        ) from None
    for each in dataclasses.fields(cls):
        if each.default is None and each.name in hints:
            hints[each.name] = typing.Optional[hints[each.name]]  # noqa: UP045  any hint, Any too
    return hints


def find_scalar_kinds(type_hint: Any) -> frozenset[type] | None:
    """Return the classes of a scalar type's values; None for a type that is not only scalars."""
    type_hint = strip_type_hint(type_hint)
    if is_union(type_hint):
        kinds = [find_scalar_kinds(each) for each in typing.get_args(type_hint)]
        known = [each for each in kinds if each is not None]
        return frozenset[type]().union(*known) if len(known) == len(kinds) else None
    try:
        return _KINDS.get(type_hint)
    except TypeError:  # a type that can't be hashed, as Annotated[int, []]
        return None


def needs_building(type_hint: Any) -> bool:
    """Return whether values of a type are built from those of a message, and are not in it."""
    type_hint = strip_type_hint(type_hint)
    origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)
    if origin is tuple or origin in SETS or type_hint is tuple:
        return True
    if origin in DICTS and arguments and is_converted_key(arguments[0]):
        return True
    if is_union(type_hint) or origin in LISTS or origin in DICTS:
        return any(map(needs_building, arguments))
    if not isinstance(type_hint, type):
        return False
    is_built = dataclasses.is_dataclass(type_hint) or issubclass(type_hint, Enum)
    return is_built or type_hint in TEXT_TYPES


def is_converted_key(type_hint: Any) -> bool:
    """Return whether keys of an object, which are text, are converted to a declared type."""
    type_hint = strip_type_hint(type_hint)
    return isinstance(type_hint, type) and (
        type_hint is int or type_hint in TEXT_TYPES or issubclass(type_hint, Enum)
    )


def list_init_fields(cls: type[Any]) -> list[dataclasses.Field[Any]]:
    """Return the fields of a dataclass that its constructor takes, which messages have."""
    return [each for each in dataclasses.fields(cls) if each.init]
