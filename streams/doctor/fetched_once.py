"""Fetch a fact once: several points need it, and a broker that is away is waited for only once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def fetched_once(fetch: Callable[[Any], T]) -> Callable[[Any], T]:
    """Decorate a method without arguments that fetches a fact: later calls return the same one.

    A call that failed fails again with the same error, at once.
    """
    name = f"_fetched_{fetch.__name__}"

    @wraps(fetch)
    def return_fetched(self: Any) -> T:
        held: tuple[T | None, Exception | None] | None = self.__dict__.get(name)
        if held is None:
            try:
                held = fetch(self), None
            except Exception as error:
                held = None, error
            self.__dict__[name] = held
        found, failure = held
        if failure is not None:
            raise failure
        return found  # type: ignore[return-value]  # it is None only if that was fetched

    return return_fetched
