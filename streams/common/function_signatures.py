"""Look at a user's function before it is called: its name and place, and the arguments it takes.

A function whose signature can't be read passes: some built-in functions have none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def describe_function(function: Any) -> str:
    """Return a function's name with its file and line, for a message."""
    name = getattr(function, "__qualname__", repr(function)).removeprefix("<locals>.")
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return (
        f"{name.rpartition('<locals>.')[2]} ({Path(code.co_filename).name}:{code.co_firstlineno})"
    )


def format_lambda(argument_names: Sequence[str]) -> str:
    """Return the text of a lambda with these arguments."""
    return f"lambda {', '.join(argument_names)}: ..." if argument_names else "lambda: ..."


def check_setting_function(function: Callable[..., Any], *argument_names: str) -> None:
    """Check the function of a setting, which is called with `argument_names` by position.

    Raises ValueError if it can't take them, or is async: nobody awaits its result.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ValueError(
            f"{describe_function(function)} is async, and nobody awaits its result: write it with "
            "def"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*argument_names)
    except TypeError:
        raise ValueError(
            f"the function is called with ({', '.join(argument_names)}), and "
            f"{describe_function(function)} takes {signature}: did you mean "
            f"{format_lambda(argument_names)}?"
        ) from None
