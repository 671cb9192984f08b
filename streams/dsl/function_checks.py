"""Check a user's function before it is called: its arguments, and that it returns something.

A function that can't be checked passes: some built-in functions have no signature.
"""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from collections.abc import Sequence
from typing import Any

from streams.common.function_signatures import describe_function, format_lambda
from streams.errors import TopologyError

KEY_VALUE_ARGUMENTS = ("key", "value")
VALUE_ARGUMENTS = ("value",)


def check_callable(
    step: str,
    function: Any,
    argument_names: Sequence[str] | None = None,
    *,
    needs_result: bool = True,
    may_yield: bool = False,
    step_with_key: str = "process_values",
) -> None:
    """Raise TopologyError, naming the step, if `function` can't take `argument_names`.

    `needs_result`: the step uses the result. `may_yield`: the step iterates over the result, so a
    generator is allowed. None for `argument_names`: any arguments. `step_with_key` is the method
    for a function of the value that needs the key, too, and leaves it as it is.
    """
    if not callable(function):
        raise TopologyError(
            f"step {step!r} needs a function, got {function!r}"
            f"{_compose_lambda_hint(argument_names)}"
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TopologyError(
            f"step {step!r}: {describe_function(function)} is async, and nobody awaits a record: "
            "write it "
            "with def, or call it in a program of its own"
        )
    if inspect.isgeneratorfunction(function) and not may_yield:
        raise TopologyError(
            f"step {step!r}: {describe_function(function)} yields, and this step takes one "
            "result: return it, "
            "or use flat_map or flat_map_values"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    if argument_names is not None:
        try:
            signature.bind(*argument_names)
        except TypeError:
            raise TopologyError(
                f"step {step!r} calls its function with ({', '.join(argument_names)}), and "
                f"{describe_function(function)} takes {signature}: "
                f"{_compose_signature_hint(argument_names, signature, step_with_key)}"
            ) from None
    gives_nothing = signature.return_annotation in (None, "None") and not inspect.isclass(function)
    if needs_result and gives_nothing:
        raise TopologyError(
            f"step {step!r} needs what its function returns, and {describe_function(function)} "
            "returns None "
            "by its annotation: return something, or use peek or for_each"
        )
    if needs_result and not may_yield and _has_no_return(function):
        raise TopologyError(
            f"step {step!r} needs what its function returns, and {describe_function(function)} "
            "has no return statement with a value: return something, also an aggregate that is "
            "changed in place, or use peek or for_each"
        )


def _has_no_return(function: Any) -> bool:
    """Return whether a function certainly ends without a value, as one whose return was forgotten.

    `return None` is a value, and a function that only raises does not end. False where the source
    is not known, or a decorator may return something.
    """
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__"):
        return False
    if function.__name__ == "<lambda>" or not any(
        each.opname in ("RETURN_CONST", "RETURN_VALUE") for each in dis.get_instructions(function)
    ):
        return False
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    return isinstance(definition, ast.FunctionDef) and not _returns_value(definition)


def _returns_value(node: ast.AST) -> bool:
    """Return whether a function has a `return` with a value, functions inside of it left out."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Return) and each.value is not None:
            return True
        is_inner = isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if not is_inner and _returns_value(each):
            return True
    return False


def _compose_lambda_hint(argument_names: Sequence[str] | None) -> str:
    """Return a hint for a message: the function written as a lambda."""
    return (
        ""
        if argument_names is None
        else f": write it as lambda {', '.join(argument_names)}: ...".replace(" :", ":")
    )


def _compose_signature_hint(
    argument_names: Sequence[str], signature: inspect.Signature, step_with_key: str
) -> str:
    """Return a hint for a function whose arguments don't fit."""
    wanted = f"did you mean {format_lambda(argument_names)}?"
    if tuple(argument_names) == VALUE_ARGUMENTS and len(signature.parameters) == len(
        KEY_VALUE_ARGUMENTS
    ):
        return f"{wanted} Where the key matters too use {step_with_key}, which keeps it"
    return wanted
