"""Check a user's function before it is called: its arguments, and that it returns something.

A function that can't be checked passes: some built-in functions have no signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streams.errors import TopologyError

KEY_VALUE = ("key", "value")
VALUE = ("value",)


def callable_for(
    step: str,
    function: Any,
    takes: Sequence[str] | None = None,
    *,
    returns: bool = True,
    may_yield: bool = False,
) -> None:
    """Raise TopologyError, naming the step, if `function` can't take `argument_names`.

    `needs_result`: the step uses the result. `may_yield`: the step iterates over the result, so a
    generator is allowed. None for `argument_names`: any arguments.
    """
    if not callable(function):
        raise TopologyError(f"step {step!r} needs a function, got {function!r}{_meant(takes)}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TopologyError(
            f"step {step!r}: {_named(function)} is async, and nobody awaits a record: write it "
            "with def, or call it in a program of its own"
        )
    if inspect.isgeneratorfunction(function) and not may_yield:
        raise TopologyError(
            f"step {step!r}: {_named(function)} yields, and this step takes one result: return it, "
            "or use flat_map or flat_map_values"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    if takes is not None:
        try:
            signature.bind(*takes)
        except TypeError:
            raise TopologyError(
                f"step {step!r} calls its function with ({', '.join(takes)}), and "
                f"{_named(function)} takes {signature}: {_instead(takes, signature)}"
            ) from None
    gives_nothing = signature.return_annotation in (None, "None") and not inspect.isclass(function)
    if returns and gives_nothing:
        raise TopologyError(
            f"step {step!r} needs what its function returns, and {_named(function)} returns None "
            "by its annotation: return something, or use peek or for_each"
        )


def _meant(takes: Sequence[str] | None) -> str:
    """Return a hint for a message: the function written as a lambda."""
    return (
        "" if takes is None else f": write it as lambda {', '.join(takes)}: ...".replace(" :", ":")
    )


def _instead(takes: Sequence[str], signature: inspect.Signature) -> str:
    """Return a hint for a function whose arguments don't fit."""
    wanted = f"did you mean {_lambda(takes)}?"
    if tuple(takes) == VALUE and len(signature.parameters) == len(KEY_VALUE):
        return wanted + " Where the key matters too use map, flat_map or process"
    return wanted


def _lambda(takes: Sequence[str]) -> str:
    """Return the text of a lambda with these arguments."""
    return f"lambda {', '.join(takes)}: ..." if takes else "lambda: ..."


def _named(function: Any) -> str:
    """Return a function's name with its file and line, for a message."""
    name = getattr(function, "__qualname__", repr(function)).removeprefix("<locals>.")
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return (
        f"{name.rpartition('<locals>.')[2]} ({Path(code.co_filename).name}:{code.co_firstlineno})"
    )
