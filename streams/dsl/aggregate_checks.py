"""Refuse a lambda that changes its aggregate in place and returns None, which deletes the key.

`lambda key, value, items: items.append(value)` returns what `append` returns: None. In an aggregate
that means that the key is deleted, with each record. A function written with `def` that returns
nothing is refused by `streams.dsl.function_checks`; of a lambda only the bytecode tells.
"""

from __future__ import annotations

import dis
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from streams.common.function_signatures import describe_function
from streams.errors import TopologyError

_CONTAINERS = (list, dict, set, deque, bytearray)
_NOT_CALLED = object()
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)


_NONE_RETURNING = frozenset(
    [
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "remove",
        "reverse",
        "sort",
        "clear",
        "rotate",
        "add",
        "discard",
        "update",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "__setitem__",
        "__delitem__",
    ]
)
"""The names of methods that change a container of Python's in place and return None."""
_IGNORED = frozenset(("RESUME", "CACHE", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL", "PUSH_NULL"))
"""Instructions that neither compute nor call anything."""


def check_returns_aggregate(
    step: str,
    initializer: Callable[[], Any],
    *aggregators: Callable[[Any, Any, Any], Any],
    merger: Callable[[Any, Any, Any], Any] | None = None,
) -> None:
    """Raise TopologyError for a lambda that returns the None of a method that changes an aggregate.

    `initializer` is called at most once: only where it returns a list, dict, set, deque or
    bytearray the results of methods are known. One that fails is left to the first record.
    """
    initial: Any = _NOT_CALLED
    mergers = () if merger is None else ((merger, 1),)
    for aggregator, aggregates_from in (*((each, 2) for each in aggregators), *mergers):
        method = _find_returned_method(aggregator, aggregates_from)
        if method is None:
            continue
        if initial is _NOT_CALLED:
            try:
                initial = initializer()
            except Exception:
                return
        if isinstance(initial, _CONTAINERS):
            raise TopologyError(
                f"step {step!r}: {describe_function(aggregator)} returns what {method}() returns, "
                "which is None, and None deletes the key: return the aggregate, also where it is "
                f"changed in place, as in (aggregate.{method}(...), aggregate)[1] or with def"
            )


def _find_returned_method(function: Any, aggregates_from: int) -> str | None:
    """Return the method of its aggregate whose result a lambda returns, if that is always None.

    The arguments from the number `aggregates_from` on are aggregates, and so is what is got from
    one by a key or an attribute.
    """
    if not inspect.isfunction(function) or function.__name__ != "<lambda>":
        return None
    code = [each for each in dis.get_instructions(function) if each.opname not in _IGNORED]
    if any(each.opcode in _JUMPS for each in code):
        return None
    if len(code) < 3:
        return None
    *body, called, returned = code
    if not called.opname.startswith("CALL") or returned.opname != "RETURN_VALUE":
        return None
    aggregates = list(inspect.signature(function).parameters)[aggregates_from:]
    if not body[0].opname.startswith("LOAD_FAST") or body[0].argval not in aggregates:
        return None
    for each in body[1:]:
        if each.opname in ("LOAD_METHOD", "LOAD_ATTR"):
            if each.argval in _NONE_RETURNING:
                return str(each.argval)
        elif not (each.opname in ("LOAD_CONST", "BINARY_SUBSCR") or each.argrepr == "[]"):
            return None
    return None
