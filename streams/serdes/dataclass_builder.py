"""Build dataclasses from the dicts and lists of a decoded message, by pydantic's core.

A type becomes one validator, composed when its serde is created (`message_schemas`). It checks the
types of all fields, without converting one into another: a number is no text, a float no integer.
Fields of dataclasses, lists, tuples, sets and dicts of them, optional or not, are built, and so are
enumerations and the types that JSON writes as text (datetime, date, time, UUID, Decimal). A field
that is missing takes its default.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from pydantic_core import SchemaValidator, ValidationError

from state.shown_values import describe_value
from streams.serdes.declared_types import (
    DICTS,
    LISTS,
    SETS,
    describe_type,
    is_union,
    needs_building,
    resolve_field_types,
    strip_type_hint,
)
from streams.serdes.message_schemas import (
    CreateUnionBuilder,
    DataclassMismatch,
    create_message_schema,
)
from streams.serdes.unknown_fields import Unknown

__all__ = [
    "DataclassMismatch",
    "create_builder",
    "describe_type",
    "resolve_field_types",
    "strip_type_hint",
    "to_plain_objects",
]

Convert = Callable[[Any], Any]

_ERRORS_SHOWN = 3


def to_plain_objects(value: Any) -> Any:
    """Return a dataclass as a dict, with lists for tuples and values for enumerations.

    It is the inverse of the function that `create_builder` returns.
    """
    if dataclasses.is_dataclass(value):
        names = (each.name for each in dataclasses.fields(value))
        return {name: to_plain_objects(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [to_plain_objects(each) for each in value]
    if isinstance(value, dict):
        return {key: to_plain_objects(each) for key, each in value.items()}
    return value.value if isinstance(value, Enum) else value


def create_builder(
    type_hint: Any, unknown: Unknown = "refuse", build_unions: CreateUnionBuilder | None = None
) -> Convert | None:
    """Return the function that builds a dataclass, or a value of another type, from a message.

    None for a type that messages have themselves, as int and dict[str, int]. `unknown` says what
    becomes of fields that a dataclass does not have, and `build_unions` creates the builders of
    unions of dataclasses, where messages tell which they have. The function raises
    DataclassMismatch, naming the fields that do not fit. This one raises TypeError for a field
    whose type a message can't tell.
    """
    if not needs_building(type_hint):
        return None
    schema = create_message_schema(type_hint, unknown, build_unions)
    validate = SchemaValidator(schema).validate_python

    def build(message: Any) -> Any:
        try:
            return validate(message)
        except ValidationError as error:
            mismatch = _describe_errors(type_hint, error)
        raise mismatch

    return build


def _describe_errors(type_hint: Any, error: ValidationError) -> DataclassMismatch:
    """Combine a validator's errors into one, by the paths of the fields."""
    found = error.errors(include_url=False)
    if any(each["type"].startswith("recursion") for each in found):
        return DataclassMismatch("it is nested more than 255 deep")
    first, *others = (_describe_error(type_hint, each) for each in found[:_ERRORS_SHOWN])
    more = [f"{each.path.lstrip('.')}: {each.reason}" for each in others]
    if len(found) > _ERRORS_SHOWN:
        more.append(f"{len(found) - _ERRORS_SHOWN} more")
    mismatch = DataclassMismatch("; ".join([first.reason, *more]), first.path)
    mismatch.__cause__ = first.__cause__
    return mismatch


def _describe_error(type_hint: Any, error: Any) -> DataclassMismatch:
    """Return one error of a validator: the path of the field, what it needs, and what it got."""
    path, parent, kind = "", type_hint, error["type"]
    hint: Any = _strip_optional(type_hint)
    for step in error["loc"]:
        if step == "[key]":
            return DataclassMismatch(_describe_need(_find_key_hint(parent), error["input"]), path)
        if kind == "missing" and typing.get_origin(hint) is tuple:
            kind = "too_short"
            break
        parent = hint
        text, child = _name_step_and_its_type(hint, step)
        path, hint = path + text, _strip_optional(child)
    if kind == "missing":
        reason = f"{describe_type(parent)} needs it, and it is missing"
    elif kind == "extra_forbidden":
        reason = f"{describe_type(parent)} has no such field"
    elif isinstance(refusal := error.get("ctx", {}).get("error"), DataclassMismatch):
        mismatch = DataclassMismatch(refusal.reason, path + refusal.path)
        mismatch.__cause__ = refusal.__cause__
        return mismatch
    else:
        reason = _describe_need(hint, error["input"])
    return DataclassMismatch(reason, path)


def _name_step_and_its_type(type_hint: Any, step: int | str) -> tuple[str, Any]:
    """Return a step of an error's path as text, and the type that is declared there."""
    arguments = typing.get_args(type_hint)
    if isinstance(step, int):
        if typing.get_origin(type_hint) is tuple and arguments[1:] != (...,):
            return f"[{step}]", arguments[step] if step < len(arguments) else Any
        return f"[{step}]", arguments[0] if arguments else Any
    if typing.get_origin(type_hint) in DICTS:
        return f"[{step!r:.200}]", arguments[1]
    if dataclasses.is_dataclass(type_hint) and isinstance(type_hint, type):
        return f".{step}", resolve_field_types(type_hint).get(step, Any)
    return f".{step:.200}", Any


def _find_key_hint(type_hint: Any) -> Any:
    return (typing.get_args(type_hint) or (Any,))[0]


def _strip_optional(type_hint: Any) -> Any:
    """Return the type X of `X | None`, and another type without its annotations."""
    type_hint = strip_type_hint(type_hint)
    if is_union(type_hint):
        others = [each for each in typing.get_args(type_hint) if each is not type(None)]
        return strip_type_hint(others[0]) if len(others) == 1 else type_hint
    return type_hint


def _describe_need(type_hint: Any, found: Any) -> str:
    """Describe the value that a field needs, and the one that the message has."""
    origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)
    if dataclasses.is_dataclass(type_hint):
        need = f"an object for {describe_type(type_hint)}"
    elif origin in DICTS or type_hint is dict:
        need = "an object"
    elif origin is tuple and arguments[1:] != (...,):
        need = f"a list of {len(arguments)}"
    elif (origin or type_hint) in (*LISTS, *SETS, tuple, Sequence):
        need = "a list"
    else:
        need = describe_type(type_hint)
    return f"needs {need}, got {describe_value(found)}"
