"""Fetch a fact once: several points need it, and a broker that is away is waited for only once.

Points are looked at side by side: one that needs a fact which another fetches waits for it. Facts
rest on each other without a circle, so that none waits for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def fetched_once(fetch: Callable[[Any], T]) -> Callable[[Any], T]:
    """Decorate a method without arguments that fetches a fact: later calls return the same one.

    A call that failed fails again with the same error, at once.
    """
    name = f"_fetched_{fetch.__name__}"

    def fetch_or_fail(self: Any) -> tuple[T | None, Exception | None]:
        try:
            return fetch(self), None
        except Exception as error:
            return None, error

    @wraps(fetch)
    def return_fetched(self: Any) -> T:
        held: tuple[T | None, Exception | None] | None = self.__dict__.get(name)
        if held is None:
            with self.__dict__.setdefault(f"{name}_lock", threading.RLock()):
                held = self.__dict__.get(name)
                if held is None:
                    held = fetch_or_fail(self)
                    self.__dict__[name] = held
        found, failure = held
        if failure is not None:
            raise failure
        return found  # type: ignore[return-value]  # it is None only if that was fetched

    return return_fetched
