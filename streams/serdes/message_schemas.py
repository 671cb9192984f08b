"""Compose pydantic-core's schemas of declared types, by which decoded messages are checked.

A schema never converts one scalar into another, as pydantic's own schemas of these types do: JSON
gives back what was given, or refuses it. Dataclasses are created by their constructors. Times and
decimals are read by Python's own functions, since what was written by `isoformat` and `str` comes
back by these with its offset and all of its digits.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic_core import CoreSchema, core_schema

from state.shown_values import describe_value
from streams.serdes.declared_types import (
    DICTS,
    LISTS,
    SETS,
    describe_type,
    is_converted_key,
    is_union,
    list_init_fields,
    needs_building,
    resolve_field_types,
    strip_type_hint,
)
from streams.serdes.unknown_fields import (
    Unknown,
    attach_unknown_fields,
    find_unknown_field,
    require_place_for_unknown_fields,
)

Convert = Callable[[Any], Any]
CreateUnionBuilder = Callable[[Sequence[Any]], Convert]
"""Creates the function that builds a value of some types, of which a message tells the one it has.
"""


class DataclassMismatch(ValueError):
    """Reports that a message does not match a dataclass, with the place and the reason."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path.lstrip('.')}: {reason}" if path else reason)
        self.reason, self.path = reason, path


def create_message_schema(
    type_hint: Any, unknown: Unknown, build_unions: CreateUnionBuilder | None = None
) -> CoreSchema:
    """Return the schema that checks a decoded message and builds a value of a type.

    Raises TypeError for a field whose type a message can't tell.
    """
    composer = _SchemaComposer(unknown, build_unions)
    schema = composer.compose(type_hint)
    if not composer.definitions:
        return schema
    return core_schema.definitions_schema(schema, list(composer.definitions.values()))


class _SchemaComposer:
    """Composes the schema of a type; `definitions` has the dataclasses that hold themselves."""

    def __init__(self, unknown: Unknown, build_unions: CreateUnionBuilder | None) -> None:
        self.definitions: dict[str, CoreSchema] = {}
        self._build_unions = build_unions
        self._unknown = unknown
        self._open: dict[type[Any], str] = {}
        self._recursive: set[str] = set()

    def compose(self, type_hint: Any) -> CoreSchema:
        """Return the schema of a type."""
        type_hint = strip_type_hint(type_hint)
        origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)
        if is_union(type_hint):
            return self._compose_union(arguments)
        if origin is typing.Literal:
            return _compose_literal(arguments)
        if origin in LISTS and arguments:
            return core_schema.list_schema(self.compose(arguments[0]), strict=True)
        if origin is set and arguments:
            return _compose_list_schema(core_schema.set_schema(self.compose(arguments[0])))
        if origin in SETS and arguments:
            return _compose_list_schema(core_schema.frozenset_schema(self.compose(arguments[0])))
        if type_hint is tuple or origin is tuple:
            return _compose_list_schema(self._compose_tuple(arguments))
        if origin in DICTS and arguments:
            return self._compose_dict(*arguments)
        if dataclasses.is_dataclass(origin):
            raise TypeError(f"{type_hint} is generic: declare a dataclass of fields without them")
        if not isinstance(type_hint, type):
            return core_schema.none_schema() if type_hint is None else core_schema.any_schema()
        if dataclasses.is_dataclass(type_hint):
            return self._compose_dataclass(type_hint)
        return _compose_class(type_hint)

    def _compose_union(self, type_hints: tuple[Any, ...]) -> CoreSchema:
        """Return the schema of a union, or raise TypeError if a message can't tell its types."""
        others = [each for each in type_hints if each is not type(None)]
        if len(others) > 1 and any(map(needs_building, others)):
            if self._build_unions is not None:
                build = self._build_unions(type_hints)
                return core_schema.no_info_plain_validator_function(build)
            names = " | ".join(getattr(hint, "__name__", str(hint)) for hint in others)
            raise TypeError(f"a message does not tell which of {names} it has")
        schema = self.compose(others[0])
        if len(others) < len(type_hints) and _has_member_of_none(others[0]):
            raise TypeError(f"a message does not tell None from {others[0].__name__}(None)")
        if len(others) > 1:
            schema = core_schema.union_schema(
                [self.compose(each) for each in others],
                mode="left_to_right",
                custom_error_type="no_member",
                custom_error_message="of none of the types",
            )
        return schema if len(others) == len(type_hints) else core_schema.nullable_schema(schema)

    def _compose_tuple(self, type_hints: tuple[Any, ...]) -> CoreSchema:
        if not type_hints:
            return core_schema.tuple_schema([core_schema.any_schema()], variadic_item_index=0)
        if type_hints[1:] == (...,):
            item = self.compose(type_hints[0])
            return core_schema.tuple_schema([item], variadic_item_index=0)
        if type_hints == ((),):
            return core_schema.tuple_schema([])
        return core_schema.tuple_schema([self.compose(each) for each in type_hints])

    def _compose_dict(self, key_hint: Any, value_hint: Any) -> CoreSchema:
        """Return the schema of a dict's keys, which are text in a message, and of its values."""
        key_hint = strip_type_hint(key_hint)
        if not is_converted_key(key_hint):
            return core_schema.dict_schema(None, self.compose(value_hint), strict=True)
        keys = _create_conversion_schema(int, int) if key_hint is int else _compose_class(key_hint)
        schema = core_schema.dict_schema(keys, self.compose(value_hint), strict=True)
        return core_schema.no_info_wrap_validator_function(_refuse_equal_keys, schema)

    def _compose_dataclass(self, cls: type[Any]) -> CoreSchema:
        """Return the schema of a dataclass; within its own it is a reference to it."""
        if reference := self._open.get(cls):
            self._recursive.add(reference)
            return core_schema.definition_reference_schema(reference)
        reference = f"{cls.__module__}.{cls.__qualname__}-{id(cls)}"
        if reference in self.definitions:
            return core_schema.definition_reference_schema(reference)
        self._open[cls] = reference
        schema = self._compose_fields(cls)
        del self._open[cls]
        if reference not in self._recursive:
            return schema
        self.definitions[reference] = {**schema, "ref": reference}
        return core_schema.definition_reference_schema(reference)

    def _compose_fields(self, cls: type[Any]) -> CoreSchema:
        require_place_for_unknown_fields(cls, self._unknown)
        rest = find_unknown_field(cls)
        hints, fields, missing = resolve_field_types(cls), {}, dataclasses.MISSING
        for each in list_init_fields(cls):
            if each.name == rest:
                continue
            try:
                schema = self.compose(hints[each.name])
            except TypeError as error:
                raise TypeError(f"{cls.__name__}.{each.name}: {error}") from None
            required = each.default is missing and each.default_factory is missing
            fields[each.name] = core_schema.typed_dict_field(schema, required=required)
        extra: typing.Any = {"ignore": "ignore", "refuse": "forbid", "keep": "allow"}[self._unknown]
        message = core_schema.typed_dict_schema(fields, extra_behavior=extra, strict=True)
        create = _create_constructor(cls)
        if self._unknown == "keep":
            create = _create_constructor_keeping_unknown(create, frozenset(fields), rest)
        return core_schema.no_info_after_validator_function(create, message)


def _create_constructor(cls: type[Any]) -> Convert:
    """Return the function that calls a dataclass's constructor with the fields of a message."""

    def construct(fields: Any) -> Any:
        try:
            return cls(**fields)
        except Exception as error:
            raise DataclassMismatch(
                f"{cls.__name__} refuses it: {type(error).__name__}: {error}"
            ) from error

    return construct


def _create_constructor_keeping_unknown(
    create: Convert, names: frozenset[str], rest: str | None
) -> Convert:
    """Return a constructor that keeps the fields whose names are not among `names`."""

    def construct_and_keep(fields: Any) -> Any:
        unknown = {name: fields.pop(name) for name in list(fields) if name not in names}
        if not unknown:
            return create(fields)
        if rest is not None:
            fields[rest] = unknown
            return create(fields)
        value = create(fields)
        attach_unknown_fields(value, unknown)
        return value

    return construct_and_keep


def _has_member_of_none(type_hint: Any) -> bool:
    """Return whether a type is an enumeration with a member that messages have as null."""
    hint = strip_type_hint(type_hint)
    return isinstance(hint, type) and issubclass(hint, Enum) and any(e.value is None for e in hint)


def _compose_literal(values: tuple[Any, ...]) -> CoreSchema:
    """Return the schema of some values; True is not 1 here, as it would be for pydantic."""
    accepted = [(type(each), each) for each in values]

    def check_literal(decoded: Any) -> Any:
        if (type(decoded), decoded) not in accepted:
            names = ", ".join(map(repr, values))
            raise DataclassMismatch(f"needs one of {names}, got {describe_value(decoded)}")
        return decoded

    return core_schema.no_info_plain_validator_function(check_literal)


def _compose_class(cls: type[Any]) -> CoreSchema:
    """Return the schema of a class that is no dataclass."""
    if cls in _SCHEMAS:
        return _SCHEMAS[cls]
    if issubclass(cls, Enum):
        return _create_conversion_schema(_create_member_finder(cls), cls)
    return (
        core_schema.dict_schema(strict=True)
        if typing.is_typeddict(cls)
        else _compose_instance_schema(cls)
    )


def _compose_instance_schema(cls: type[Any]) -> CoreSchema:
    """Return the schema of objects of a class, as Avro decodes bytes."""
    try:
        isinstance(None, cls)
    except TypeError:  # a protocol that says nothing at run time
        return core_schema.any_schema()
    return core_schema.is_instance_schema(cls)


def _compose_list_schema(schema: CoreSchema) -> CoreSchema:
    """Return the schema of a tuple or a set that takes nothing but the lists of a message."""

    def check_list(elements: Any) -> Any:
        if type(elements) is not list:
            raise DataclassMismatch(f"needs a list, got {describe_value(elements)}")
        return elements

    return core_schema.no_info_before_validator_function(check_list, schema)


def _refuse_equal_keys(entries: Any, build: Convert) -> Any:
    found = build(entries)
    if len(found) < len(entries):
        raise DataclassMismatch(f"has a key twice, got {describe_value(entries)}")
    return found


def _create_member_finder(cls: type[Enum]) -> Convert:
    def find_member(decoded: Any) -> Enum:
        member = cls(decoded)
        # True equals 1, and is no number in a message.
        if (type(decoded) is bool) is not (type(member.value) is bool):
            raise ValueError(f"{cls.__name__} has no {decoded}")
        return member

    return find_member


def _to_exact_decimal(decoded: Any) -> Decimal:
    """Return the decimal of a text or an integer, or raise ValueError: a float is rounded."""
    if type(decoded) not in (int, str):
        raise ValueError("not exact")
    try:
        return Decimal(decoded)
    except InvalidOperation as error:
        raise ValueError(str(error)) from None


def _create_conversion_schema(function: Convert, result_type: type[Any]) -> CoreSchema:
    """Return the schema of values that a function creates from those of a message."""
    name = describe_type(result_type)

    def convert(decoded: Any) -> Any:
        if isinstance(decoded, result_type):  # decoded already, as Avro does with its logical types
            return decoded
        try:
            return function(decoded)
        except (TypeError, ValueError, AttributeError):
            raise DataclassMismatch(f"needs {name}, got {describe_value(decoded)}") from None

    return core_schema.no_info_plain_validator_function(convert)


_INTEGER = core_schema.int_schema(strict=True)
_SCHEMAS: dict[Any, CoreSchema] = {
    object: core_schema.any_schema(),
    str: core_schema.str_schema(strict=True),
    int: _INTEGER,
    # An integer stays one, since it would come back as another type than it was written.
    float: core_schema.union_schema(
        [_INTEGER, core_schema.float_schema(strict=True)],
        mode="left_to_right",
        custom_error_type="no_number",
        custom_error_message="no number",
    ),
    bool: core_schema.bool_schema(strict=True),
    type(None): core_schema.none_schema(),
    datetime: _create_conversion_schema(datetime.fromisoformat, datetime),
    date: _create_conversion_schema(date.fromisoformat, date),
    time: _create_conversion_schema(time.fromisoformat, time),
    UUID: _create_conversion_schema(UUID, UUID),
    Decimal: _create_conversion_schema(_to_exact_decimal, Decimal),
}
