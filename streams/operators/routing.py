"""Merge and split streams, without changing a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.operators.unfinished_calls import refuse_unfinished_call


def forward_unchanged(binding: Binding) -> ForwardRecord:
    """Bind a step that only forwards: return the function that calls the steps downstream."""
    return binding.downstream


def split_records(
    choices: Sequence[tuple[Callable[[Any, Any], object], str]], default: str | None
) -> Operator:
    """Return the operator that forwards a record to the step of the first predicate that is true.

    If none is, the record goes to `default`; None: it is dropped.
    """

    def bind_operator(binding: Binding) -> ForwardRecord:
        children, failed = binding.children, binding.skip_record_or_raise
        branches = tuple((predicate, children[name]) for predicate, name in choices)
        default_branch = None if default is None else children[default]

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                chosen = default_branch
                for predicate, way in branches:
                    accepted = predicate(key, value)
                    if accepted is not True and accepted is not False:
                        refuse_unfinished_call(accepted)
                    if accepted:
                        chosen = way
                        break
            except Exception as error:
                failed(error, key, value)
                return
            if chosen is not None:
                chosen(key, value, timestamp_ms)

        return process_record

    return bind_operator
