"""Build dataclasses from the dicts and lists of a decoded message.

A dataclass becomes one function, composed when its serde is created. Fields of dataclasses, lists,
tuples, sets and dicts of them, optional or not, are built, and so are enumerations and the types
that JSON writes as text (datetime, date, time, UUID, Decimal). What is a number, text or boolean in
the message is taken as it is: a dataclass of such fields is called with the decoded dict and
nothing else.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, NoReturn
from uuid import UUID

from state.shown_values import describe_value

Convert = Callable[[Any], Any]

_FROM_TEXT: dict[type, Convert] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
}
LISTS = (list, Sequence)
DICTS = (dict, Mapping)
SETS = (set, frozenset)


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


class DataclassMismatch(ValueError):
    """Reports that a message does not match a dataclass, with the place and the reason."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path.lstrip('.')}: {reason}" if path else reason)
        self.reason, self.path = reason, path

    def in_parent(self, step: str) -> DataclassMismatch:
        """Return the mismatch as seen from the enclosing object; `step` is .field or [index]."""
        return DataclassMismatch(self.reason, step + self.path)


def create_builder(type_hint: Any) -> Convert | None:
    """Return the function that builds a dataclass, or a value of another type, from a message.

    None for a type whose values are taken as they are in the message. The function raises
    ValueError, naming the field. This one raises TypeError for a field whose type a message can't
    tell.
    """
    return _converter_for(type_hint, {})


def describe_type(type_hint: Any) -> str:
    """Return the name of a type, as Order or list[Order], for the name of its serde."""
    if typing.get_origin(type_hint) is None and isinstance(type_hint, type):
        return type_hint.__name__
    arguments = typing.get_args(type_hint)
    named = re.sub(r"\b\w+\.", "", str(type_hint))
    return named if arguments else str(type_hint)


def _add_dataclass_builder(cls: type[Any], builders: dict[type[Any], Convert]) -> Convert:
    """Return the function that builds a dataclass, and add it to `builders`.

    A dataclass that refers to itself finds its own function there before it is complete.
    """

    def build_later(message: Any) -> Any:
        return builders[cls](message)

    builders[cls] = build_later
    fields = {each.name: each for each in dataclasses.fields(cls) if each.init}
    converts = _field_converters(cls, fields, builders)

    def build_flat(message: Any) -> Any:
        try:
            return cls(**message)
        except Exception as error:
            _raise_mismatch(cls, fields, message, error)

    def build_nested(message: Any) -> Any:
        name = ""
        try:
            for name, convert in converts:
                if name in message:
                    message[name] = convert(message[name])
        except DataclassMismatch as misfit:
            raise misfit.in_parent(f".{name}") from None
        except TypeError as error:
            _raise_mismatch(cls, fields, message, error)
        return build_flat(message)

    builders[cls] = build_nested if converts else build_flat
    return builders[cls]


def _field_converters(
    cls: type[Any], field_names: Iterable[str], builders: dict[type[Any], Convert]
) -> list[tuple[str, Convert]]:
    """Return the fields whose decoded values must be converted, each with its converter."""
    hints = resolve_field_types(cls)
    converts = []
    for name in field_names:
        try:
            convert = _converter_for(hints[name], builders)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}.{name}: {error}") from None
        if convert is not None:
            converts.append((name, convert))
    return converts


def resolve_field_types(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields. Raises TypeError for one that is unknown."""
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{cls.__name__}: {error}, which is the type of a field: define it, and outside of "
            "functions, before the serde"
        ) from None


def _raise_mismatch(
    cls: type[Any], fields: Mapping[str, dataclasses.Field[Any]], message: Any, error: Exception
) -> NoReturn:
    """Raise DataclassMismatch with the reason why `cls` can't be created from a message."""
    if not isinstance(message, dict):
        raise DataclassMismatch(
            f"needs an object for {cls.__name__}, got {describe_value(message)}"
        ) from None
    missing = dataclasses.MISSING
    for name, field in fields.items():
        if name not in message and field.default is missing and field.default_factory is missing:
            raise DataclassMismatch(
                f"{cls.__name__} needs it, and it is missing", f".{name}"
            ) from None
    for name in message:
        if name not in fields:
            raise DataclassMismatch(f"{cls.__name__} has no such field", f".{name}") from None
    raise DataclassMismatch(
        f"{cls.__name__} refuses it: {type(error).__name__}: {error}"
    ) from error


def _converter_for(type_hint: Any, builders: dict[type[Any], Convert]) -> Convert | None:
    """Return the function that converts a decoded value to a type, or None if none is needed."""
    type_hint = strip_type_hint(type_hint)
    origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)
    if origin in (typing.Union, types.UnionType):
        return _union_converter(arguments, builders)
    if origin in LISTS and arguments:
        return _list_converter(_converter_for(arguments[0], builders), list)
    if origin in SETS and arguments:
        return _list_converter(_converter_for(arguments[0], builders), origin)
    if origin is tuple and arguments:
        return _tuple_converter(arguments, builders)
    if origin in DICTS and arguments:
        return _dict_converter(arguments, builders)
    if type_hint is tuple:
        return _list_converter(None, tuple)
    if not isinstance(type_hint, type):
        return None
    if dataclasses.is_dataclass(type_hint):
        return builders.get(type_hint) or _add_dataclass_builder(type_hint, builders)
    if issubclass(type_hint, Enum):
        return _call_converter(type_hint, type_hint)
    return _call_converter(_FROM_TEXT[type_hint], type_hint) if type_hint in _FROM_TEXT else None


def strip_type_hint(type_hint: Any) -> Any:
    """Return the type that an annotated type or a NewType stands for."""
    while typing.get_origin(type_hint) is typing.Annotated:
        type_hint = typing.get_args(type_hint)[0]
    return type_hint.__supertype__ if isinstance(type_hint, typing.NewType) else type_hint


def _union_converter(
    type_hints: Sequence[Any], builders: dict[type[Any], Convert]
) -> Convert | None:
    """Return the converter of `X | None`, or None if the union has no type that needs a converter.

    Raises TypeError for a union of several types of which one needs a converter, since a message
    does not tell which of them it has.
    """
    others = [hint for hint in type_hints if hint is not types.NoneType]
    converts = [convert for hint in others if (convert := _converter_for(hint, builders))]
    if not converts:
        return None
    if len(others) > 1:
        names = " | ".join(getattr(hint, "__name__", str(hint)) for hint in others)
        raise TypeError(f"a message does not tell which of {names} it has")
    (convert,) = converts
    return lambda found: None if found is None else convert(found)


def _list_converter(
    convert: Convert | None, collection_type: Callable[[Any], Any]
) -> Convert | None:
    if convert is None and collection_type is list:
        return None

    def build_list(elements: Any) -> Any:
        if type(elements) is not list:
            raise DataclassMismatch(f"needs a list, got {describe_value(elements)}")
        if convert is None:
            return collection_type(elements)
        index = 0
        try:
            for index, value in enumerate(elements):
                elements[index] = convert(value)
        except DataclassMismatch as misfit:
            raise misfit.in_parent(f"[{index}]") from None
        return elements if collection_type is list else collection_type(elements)

    return build_list


def _tuple_converter(
    type_hints: Sequence[Any], builders: dict[type[Any], Convert]
) -> Convert | None:
    if len(type_hints) == 2 and type_hints[1] is Ellipsis:
        return _list_converter(_converter_for(type_hints[0], builders), tuple)
    converts = [_converter_for(hint, builders) for hint in type_hints]

    def build_tuple(elements: Any) -> Any:
        if type(elements) is not list or len(elements) != len(converts):
            raise DataclassMismatch(
                f"needs a list of {len(converts)}, got {describe_value(elements)}"
            )
        for index, convert in enumerate(converts):
            try:
                if convert is not None:
                    elements[index] = convert(elements[index])
            except DataclassMismatch as misfit:
                raise misfit.in_parent(f"[{index}]") from None
        return tuple(elements)

    return build_tuple


def _dict_converter(
    type_hints: Sequence[Any], builders: dict[type[Any], Convert]
) -> Convert | None:
    """Return the conversion of a dict's keys, which are text in a message, and of its values."""
    convert_key, convert = _key_converter(type_hints[0]), _converter_for(type_hints[1], builders)
    if convert is None and convert_key is None:
        return None

    def build_dict(entries: Any) -> Any:
        if type(entries) is not dict:
            raise DataclassMismatch(f"needs an object, got {describe_value(entries)}")
        key, found = None, {}
        try:
            for key, value in entries.items():
                built = value if convert is None else convert(value)
                found[key if convert_key is None else convert_key(key)] = built
        except DataclassMismatch as misfit:
            raise misfit.in_parent(f"[{key!r}]") from None
        if len(found) < len(entries):
            raise DataclassMismatch(f"has a key twice, got {describe_value(entries)}")
        return found

    return build_dict


def _key_converter(type_hint: Any) -> Convert | None:
    """Return the function that converts the keys of an object, or None if they stay text."""
    type_hint = strip_type_hint(type_hint)
    if type_hint is int:
        return _call_converter(int, int)
    return _converter_for(type_hint, {}) if _is_key_type(type_hint) else None


def _is_key_type(type_hint: Any) -> bool:
    return isinstance(type_hint, type) and (type_hint in _FROM_TEXT or issubclass(type_hint, Enum))


def _to_decimal(decoded: Any) -> Decimal:
    """Return the decimal of a text or an integer, or raise ValueError: a float is rounded."""
    if type(decoded) not in (int, str):
        raise ValueError("not exact")
    try:
        return Decimal(decoded)
    except InvalidOperation as error:
        raise ValueError(str(error)) from None


_FROM_TEXT[Decimal] = _to_decimal


def _call_converter(function: Convert, result_type: type[Any]) -> Convert:
    def build_value(decoded: Any) -> Any:
        if isinstance(decoded, result_type):  # decoded already, as Avro does with its logical types
            return decoded
        try:
            return function(decoded)
        except (TypeError, ValueError, AttributeError):
            raise DataclassMismatch(
                f"needs {result_type.__name__}, got {describe_value(decoded)}"
            ) from None

    return build_value
