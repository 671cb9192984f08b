"""Build dataclasses from the dicts and lists of a decoded message.

A dataclass becomes one function, composed when its serde is created. Fields of dataclasses, lists,
tuples and dicts of them, optional or not, are built, and so are the types that JSON writes as text
(datetime, date, time, UUID) and enumerations. What is a number, text or boolean in the message is
taken as it is: a dataclass of such fields is called with the decoded dict and nothing else.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from enum import Enum
from typing import Any, NoReturn
from uuid import UUID

from streams.serdes.serde import shown

Convert = Callable[[Any], Any]

_FROM_TEXT: dict[type, Convert] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
}
_LISTS = (list, Sequence)
_DICTS = (dict, Mapping)


def taken_apart(value: Any) -> Any:
    """Return a dataclass as a dict, with lists for tuples and values for enumerations.

    It is the inverse of the function that `create_builder` returns.
    """
    if dataclasses.is_dataclass(value):
        names = (each.name for each in dataclasses.fields(value))
        return {name: taken_apart(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [taken_apart(each) for each in value]
    if isinstance(value, dict):
        return {key: taken_apart(each) for key, each in value.items()}
    return value.value if isinstance(value, Enum) else value


class Misfit(ValueError):
    """Reports that a message does not match a dataclass, with the place and the reason."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path.lstrip('.')}: {reason}" if path else reason)
        self.reason, self.path = reason, path

    def within(self, step: str) -> Misfit:
        """Return the mismatch as seen from the enclosing object; `step` is .field or [index]."""
        return Misfit(self.reason, step + self.path)


def builder(cls: type[Any]) -> Convert:
    """Return the function that builds the dataclass `cls` from a dict.

    That function raises ValueError, naming the field. This one raises TypeError for a field whose
    type a message can't tell.
    """
    return _dataclass(cls, {})


def _dataclass(cls: type[Any], known: dict[type[Any], Convert]) -> Convert:
    """Return the function that builds a dataclass, and add it to `builders`.

    A dataclass that refers to itself finds its own function there before it is complete.
    """

    def build_later(message: Any) -> Any:
        return known[cls](message)

    known[cls] = build_later
    fields = {each.name: each for each in dataclasses.fields(cls) if each.init}
    converts = _of_fields(cls, fields, known)

    def build_flat(message: Any) -> Any:
        try:
            return cls(**message)
        except Exception as error:
            _explain(cls, fields, message, error)

    def build_nested(message: Any) -> Any:
        name = ""
        try:
            for name, convert in converts:
                if name in message:
                    message[name] = convert(message[name])
        except Misfit as misfit:
            raise misfit.within(f".{name}") from None
        except TypeError as error:
            _explain(cls, fields, message, error)
        return build_flat(message)

    known[cls] = build_nested if converts else build_flat
    return known[cls]


def _of_fields(
    cls: type[Any], names: Iterable[str], known: dict[type[Any], Convert]
) -> list[tuple[str, Convert]]:
    """Return the fields that have to be built, each with its conversion."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{cls.__name__}: {error}, which is the type of a field: define it, and outside of "
            "functions, before the serde"
        ) from None
    converts = []
    for name in names:
        try:
            convert = _of(hints[name], known)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}.{name}: {error}") from None
        if convert is not None:
            converts.append((name, convert))
    return converts


def _explain(
    cls: type[Any], fields: Mapping[str, dataclasses.Field[Any]], found: Any, error: Exception
) -> NoReturn:
    """Raise DataclassMismatch with the reason why `cls` can't be created from a message."""
    if not isinstance(found, dict):
        raise Misfit(f"needs an object for {cls.__name__}, got {shown(found)}") from None
    missing = dataclasses.MISSING
    for name, field in fields.items():
        if name not in found and field.default is missing and field.default_factory is missing:
            raise Misfit(f"{cls.__name__} needs it, and it is missing", f".{name}") from None
    for name in found:
        if name not in fields:
            raise Misfit(f"{cls.__name__} has no such field", f".{name}") from None
    raise Misfit(f"{cls.__name__} refuses it: {type(error).__name__}: {error}") from error


def _of(hint: Any, known: dict[type[Any], Convert]) -> Convert | None:
    """Return the function that converts a decoded value to a type, or None if none is needed."""
    hint = _bare(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(arguments, known)
    if origin in _LISTS and arguments:
        return _each(_of(arguments[0], known), list)
    if origin is tuple and arguments:
        return _tuple(arguments, known)
    if origin in _DICTS and arguments:
        return _values(arguments, known)
    if hint is tuple:
        return _each(None, tuple)
    if not isinstance(hint, type):
        return None
    if dataclasses.is_dataclass(hint):
        return known.get(hint) or _dataclass(hint, known)
    if issubclass(hint, Enum):
        return _called(hint, hint)
    return _called(_FROM_TEXT[hint], hint) if hint in _FROM_TEXT else None


def _bare(hint: Any) -> Any:
    while typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    return hint.__supertype__ if isinstance(hint, typing.NewType) else hint


def _one_of(hints: Sequence[Any], known: dict[type[Any], Convert]) -> Convert | None:
    """Return the conversion of a union type, where None stays None.

    Of several other types none may need building: a message does not tell which it has.
    """
    others = [hint for hint in hints if hint is not types.NoneType]
    converts = [convert for hint in others if (convert := _of(hint, known))]
    if not converts:
        return None
    if len(others) > 1:
        names = " | ".join(getattr(hint, "__name__", str(hint)) for hint in others)
        raise TypeError(f"a message does not tell which of {names} it has")
    (convert,) = converts
    return lambda found: None if found is None else convert(found)


def _each(convert: Convert | None, kind: Callable[[Any], Any]) -> Convert | None:
    if convert is None and kind is list:
        return None

    def build_list(elements: Any) -> Any:
        if type(elements) is not list:
            raise Misfit(f"needs a list, got {shown(elements)}")
        if convert is None:
            return kind(elements)
        index = 0
        try:
            for index, value in enumerate(elements):
                elements[index] = convert(value)
        except Misfit as misfit:
            raise misfit.within(f"[{index}]") from None
        return elements if kind is list else kind(elements)

    return build_list


def _tuple(hints: Sequence[Any], known: dict[type[Any], Convert]) -> Convert | None:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return _each(_of(hints[0], known), tuple)
    converts = [_of(hint, known) for hint in hints]

    def build_tuple(elements: Any) -> Any:
        if type(elements) is not list or len(elements) != len(converts):
            raise Misfit(f"needs a list of {len(converts)}, got {shown(elements)}")
        for index, convert in enumerate(converts):
            try:
                if convert is not None:
                    elements[index] = convert(elements[index])
            except Misfit as misfit:
                raise misfit.within(f"[{index}]") from None
        return tuple(elements)

    return build_tuple


def _values(hints: Sequence[Any], known: dict[type[Any], Convert]) -> Convert | None:
    """Return the conversion of a dict's values; the keys of a JSON object are text and stay so."""
    convert = _of(hints[1], known)
    if convert is None:
        return None

    def build_dict(entries: Any) -> Any:
        if type(entries) is not dict:
            raise Misfit(f"needs an object, got {shown(entries)}")
        key = None
        try:
            for key, value in entries.items():
                entries[key] = convert(value)
        except Misfit as misfit:
            raise misfit.within(f"[{key!r}]") from None
        return entries

    return build_dict


def _called(function: Convert, kind: type[Any]) -> Convert:
    def build_value(decoded: Any) -> Any:
        if isinstance(decoded, kind):  # decoded already, as Avro does with its logical types
            return decoded
        try:
            return function(decoded)
        except (TypeError, ValueError, AttributeError):
            raise Misfit(f"needs {kind.__name__}, got {shown(decoded)}") from None

    return build_value
