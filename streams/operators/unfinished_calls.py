"""Refuse a coroutine or generator that a user's function has returned in the place of a result.

Nothing of its body has run, and nobody will run it: a coroutine is also true, so that a filter
would let all records pass. `streams.dsl.function_checks` refuses `async def` when a topology is
built; of a lambda that calls such a function only its result tells.
"""

from __future__ import annotations

from collections.abc import Callable
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

_UNFINISHED = (CoroutineType, GeneratorType, AsyncGeneratorType)


def refuse_unfinished_call(result: Any) -> None:
    """Raise TypeError if `result` is a coroutine or generator, of which nothing has run."""
    if not isinstance(result, _UNFINISHED):
        return
    name = getattr(result, "__qualname__", type(result).__name__).rpartition("<locals>.")[2]
    if isinstance(result, CoroutineType):
        result.close()  # else Python warns that it was never awaited, without a place
    what = "yields" if isinstance(result, GeneratorType) else "is async"
    raise TypeError(
        f"the step's function returned what {name} has not run yet: that {what}, and nobody runs "
        "it for a record: call a function that returns its result"
    )


def with_first_result_checked(
    function: Callable[..., Any], use_unchecked: Callable[[], None]
) -> Callable[..., Any]:
    """Return `function` with its results checked, for a step that calls it for each record.

    `use_unchecked` is called at the first result that is something, after which the step calls
    `function` itself: records after it cost nothing.
    """

    def call_checked(*arguments: Any) -> Any:
        result = function(*arguments)
        if result is not None:
            refuse_unfinished_call(result)
            use_unchecked()
        return result

    return call_checked
