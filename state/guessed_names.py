"""Say of a name that Kafka Streams has, and a class here does not, what it is called here.

Such a name is an attribute of the class that refuses each access. The class has no `__getattr__`
for it, with which Python looks up every attribute of an object in a slower way: records and stores
are used for each record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import getattr_static
from typing import NoReturn, TypeVar

T = TypeVar("T", bound=type)


class GuessedName:
    """Refuses access to an attribute that has another name here, and says which."""

    __slots__ = ("_hint", "_name")

    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._hint = hint

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        """Raise AttributeError with what to write instead."""
        label = type(instance).__name__ if owner is None else owner.__name__
        raise AttributeError(f"{label} has no {self._name!r}: {self._hint}")


def explain_guessed_names(names: Mapping[str, str]) -> Callable[[T], T]:
    """Return a decorator by which a class says what its `names` of Kafka Streams are here.

    `names` are in Python's spelling, with what to write instead. Java's spelling is understood too,
    also that of the methods that the class has.
    """

    def add_names(cls: T) -> T:
        own = {n: f"did you mean {n}?" for n in dir(cls) if n[0] != "_" and "_" in n}
        for name, hint in {**own, **names}.items():
            for spelled in {name, spell_in_java(name)}:
                if not hasattr(cls, spelled):
                    setattr(cls, spelled, GuessedName(spelled, hint))
        setattr(cls, "__dir__", list_own_names)  # noqa: B010  mypy takes no other way
        return cls

    return add_names


def list_own_names(owner: object) -> list[str]:
    """Return the names of an object without those that it refuses, as completions show them."""
    cls = type(owner)
    names = object.__dir__(owner)
    return [n for n in names if not isinstance(getattr_static(cls, n, None), GuessedName)]


def spell_in_java(name: str) -> str:
    """Return a name of Python in Java's spelling, as `putIfAbsent` for `put_if_absent`."""
    return re.sub(r"(?<=[a-z0-9])_([a-z])", lambda found: found[1].upper(), name)
