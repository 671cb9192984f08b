"""Routing: steps that join and part streams, and change no record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streams.topology.nodes import Binding, Emit, Operator


def pass_on(at: Binding) -> Emit:
    """A place in the topology that costs nothing: merged streams, a branch."""
    return at.downstream


def branch(
    choices: Sequence[tuple[Callable[[Any, Any], object], str]], otherwise: str | None
) -> Operator:
    """To the next step of the first predicate that is true, else to `otherwise`, else nowhere."""

    def bind(at: Binding) -> Emit:
        children, failed = at.children, at.failed
        ways = tuple((predicate, children[name]) for predicate, name in choices)
        rest = None if otherwise is None else children[otherwise]

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                chosen = rest
                for predicate, way in ways:
                    if predicate(key, value):
                        chosen = way
                        break
            except Exception as error:
                failed(error, key, value)
                return
            if chosen is not None:
                chosen(key, value, timestamp_ms)

        return process

    return bind
