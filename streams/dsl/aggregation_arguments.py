"""Raise TopologyError with an explanation for arguments that an aggregation does not take.

Python's own message says how many arguments there are, and not which name the user forgot.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.serdes import Serde

F = TypeVar("F", bound=Callable[..., Any])

_WINDOWS_FIRST = (
    "is about windows: first windowed_by(windows.tumbling(...)) or the like; a table's updates are "
    "held back by suppress(...)"
)
_OTHER_NAMES = {
    "emit": _WINDOWS_FIRST,
    "on_late": _WINDOWS_FIRST,
    "merger": "is for windows.session(...)",
    "materialized": "is store= here: a name, or a Store",
    "named": "is name= here",
    "value_serde": "is value= here",
}
"""What is to be said of a keyword that an aggregation lacks; some are those of others."""


def refuse_wrong_arguments(aggregation: F) -> F:
    """Return a method of a group that raises TopologyError for arguments it does not take.

    The message names the group's step and says what to write. The signature stays as it is.
    """
    signature = inspect.signature(aggregation)

    @functools.wraps(aggregation)
    def call_checked(*args: Any, **keywords: Any) -> Any:
        try:
            signature.bind(*args, **keywords)
        except TypeError as error:
            hint = _find_hint(aggregation.__name__, signature, args, keywords)
            raise TopologyError(
                f"{args[0]!r}: {aggregation.__name__}(...), {error}{hint}"
            ) from None
        return aggregation(*args, **keywords)

    return cast(F, call_checked)


def _find_hint(
    method: str, signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]
) -> str:
    """Suggest how to write arguments that don't fit; empty if nothing is known."""
    names = list(signature.parameters)
    for name in keywords:
        if name in names:
            continue
        if told := _OTHER_NAMES.get(name):
            return f": {name}= {told}"
        if close := difflib.get_close_matches(name, names, n=1):
            return f": did you mean {close[0]}=?"
    parameters = signature.parameters
    positional = [n for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    functions = ", ".join(positional[1:])
    for extra in args[len(positional) :]:
        before = f"{functions}, " if functions else ""
        if isinstance(extra, str | Store):
            shown = f'"{extra}"' if isinstance(extra, str) else "Store...."
            return f": the store has a name, {method}({before}store={shown})"
        if isinstance(extra, Serde):
            return f": the serde of the result has a name, {method}({before}value=serdes....)"
        if callable(extra) and "merger" in names:
            return f": the merger of sessions has a name, {method}({before}merger=...)"
    shown_names = [n if n in positional else f"{n}=" for n in names[1:]]
    return f": it takes {', '.join(shown_names)}"
