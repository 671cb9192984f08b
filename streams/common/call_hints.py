"""Explain calls whose arguments don't fit: which arguments there are, and what Java's are called.

Python says of such a call only that an argument is unexpected, or that there are too many. Someone
who comes from Kafka Streams has guessed it: a builder object is several keyword arguments here, and
what is optional is given by name. A call that fits costs one more frame: this is for methods that
describe an application, not for those that records go through.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

from streams.common.counted import format_count
from streams.errors import TopologyError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

_SERDES = ("key", "value")
_JOIN_WINDOW = ("within", "before", "after", "grace")
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "as_": ("name",),
    "auto_offset_reset": ("offset_reset",),
    "cache": ("caching",),
    "caching_enabled": ("caching",),
    "consumed": (*_SERDES, "timestamp_extractor", "offset_reset", "name"),
    "default_branch": ("default",),
    "duration": ("interval",),
    "emit_strategy": ("emit",),
    "extractor": ("timestamp_extractor",),
    "foreign_key_extractor": ("foreign_key",),
    "grace_period": ("grace",),
    "grouped": (*_SERDES, "name"),
    "history_retention": ("history",),
    "inactivity_gap": ("gap",),
    "join_windows": _JOIN_WINDOW,
    "joined": ("key", "this_value", "other_value", "value", "grace", "name"),
    "key_mapper": ("selector", "foreign_key", "key"),
    "key_mapping": ("selector", "foreign_key", "key"),
    "key_selector": ("selector", "foreign_key", "key"),
    "key_serde": ("key",),
    "key_value_mapper": ("mapper", "selector", "foreign_key", "key"),
    "logging": ("logged",),
    "logging_enabled": ("logged",),
    "materialized": ("store", "value"),
    "named": ("name",),
    "num_partitions": ("partitions",),
    "number_of_partitions": ("partitions",),
    "offset_reset_policy": ("offset_reset",),
    "other_store_supplier": ("other_store",),
    "other_value_serde": ("other_value",),
    "parent_names": ("parents",),
    "produced": (*_SERDES, "partitioner", "name"),
    "punctuation_type": ("clock",),
    "punctuator": ("callback",),
    "queryable_store_name": ("store",),
    "repartitioned": ("partitions", "partitioner", *_SERDES, "name"),
    "reset_policy": ("offset_reset",),
    "retention_period": ("retention",),
    "session_merger": ("merger",),
    "state_store_names": ("stores",),
    "state_stores": ("stores",),
    "store_builder": ("store",),
    "store_name": ("store",),
    "store_names": ("stores",),
    "store_supplier": ("store",),
    "stream_joined": ("key", "this_value", "other_value", "store", "other_store", "name"),
    "stream_partitioner": ("partitioner",),
    "supplier": ("processor", "transformer", "store"),
    "table_joined": ("other_partitioner", "name"),
    "this_store_supplier": ("store",),
    "time_difference": ("within", "difference"),
    "topic_pattern": ("topic",),
    "topics": ("topic",),
    "type": ("clock",),
    "value_joiner": ("joiner",),
    "value_serde": ("value",),
    "window": _JOIN_WINDOW,
    "window_size": ("size",),
    "windows": _JOIN_WINDOW,
}
"""The arguments here that one of Kafka Streams is, by its name in Python's spelling."""

_HANDLER_SETTING = "it is a setting: App(..., uncaught_exception_handler=...)"
_OTHER_WAYS: Mapping[tuple[str, str], str] = {
    ("global_table", "timestamp_extractor"): (
        "its rows have the times of their records; a Processor of "
        "app.topology_builder().add_global_store(...) may put them with others"
    ),
    ("global_table", "offset_reset"): "a global table is always read from its first record",
    ("start", "uncaught_exception_handler"): _HANDLER_SETTING,
    ("run", "uncaught_exception_handler"): _HANDLER_SETTING,
}
"""The way to take instead, by a method and an argument that it will never have."""

_BY_POSITION: Mapping[str, tuple[str, ...]] = {
    "Serde": _SERDES,
    "Store": ("store",),
    "str": ("store", "name"),
    "timedelta": ("within", "grace", "retention", "history"),
    "function": ("foreign_key", "partitioner", "merger", "timestamp_extractor"),
}
"""The arguments that a value may be that was given by position, by the name of its class."""


def explain_calls(cls: C) -> C:
    """Let the constructor of a class, and its public methods, explain calls that don't fit."""
    wrap_methods_to_explain_calls(cls)
    if "__init__" in vars(cls) and not hasattr(cls, "__dataclass_fields__"):
        setattr(cls, "__init__", explain_call(vars(cls)["__init__"]))  # noqa: B010  mypy: unsound
    return cls


def wrap_methods_to_explain_calls(cls: type) -> None:
    """Let all public methods of a class, also inherited ones, explain calls that don't fit."""
    for name in dir(cls):
        member = None if name.startswith("_") else inspect.getattr_static(cls, name)
        if inspect.isfunction(member) and not hasattr(member, "__wrapped__"):
            setattr(cls, name, explain_call(member))
        elif isinstance(member, classmethod) and not hasattr(member.__func__, "__wrapped__"):
            setattr(cls, name, classmethod(explain_call(member.__func__)))


def explain_call(function: F) -> F:
    """Return a function that raises a TopologyError which explains a call that does not fit.

    A TypeError that the function itself raises is left as it is.
    """

    @wraps(function)
    def call_function(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError as error:
            was_called = error.__traceback__ is None or error.__traceback__.tb_next is not None
            if was_called:
                raise
            raise TopologyError(_explain_misfit(function, args, keywords)) from None

    return call_function  # type: ignore[return-value]


def find_argument_hint(method: str, argument: str, parameters: Iterable[str]) -> str:
    """Return what to write instead of an argument that `method` does not have; may be empty."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", argument).lower()
    if way := _OTHER_WAYS.get((method, snake)):
        return way
    there = list(parameters)
    if found := [f"{each}=" for each in _ARGUMENTS.get(snake, ()) if each in there]:
        return f"here it is {_join_words(found)}"
    if close := difflib.get_close_matches(snake, there, n=1):
        return f"did you mean {close[0]}=?"
    return ""


def _explain_misfit(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> str:
    """Return the message for a call whose arguments don't fit the function."""
    parameters = dict(inspect.signature(function).parameters)
    method = function.__name__
    label = method
    first = next(iter(parameters), "")
    if first in ("self", "cls") and args:
        parameters.pop(first)
        owner = (args[0] if first == "cls" else type(args[0])).__name__
        label, args = owner if method == "__init__" else f"{owner}.{method}", args[1:]
    kinds = inspect.Parameter
    named = {n: p for n, p in parameters.items() if p.kind is not kinds.VAR_KEYWORD}
    by_position = [n for n, p in named.items() if p.kind is kinds.POSITIONAL_OR_KEYWORD]
    faults: list[str] = []
    if len(named) == len(parameters):
        for each in sorted(keywords.keys() - named.keys()):
            hint = find_argument_hint(method, each, named)
            faults.append(f"takes no {each}={f' ({hint})' if hint else ''}")
    extra = args[len(by_position) :]
    if extra and not any(p.kind is kinds.VAR_POSITIONAL for p in named.values()):
        hint = _explain_extra_positionals(method, extra, parameters)
        count = format_count(len(by_position), "argument")
        faults.append(f"takes {count} by position{hint}")
    missing = [
        each
        for each in named
        if named[each].default is kinds.empty
        and named[each].kind is not kinds.VAR_POSITIONAL
        and each not in keywords
        and each not in by_position[: len(args)]
    ]
    if missing:
        faults.append(f"needs {_join_words(missing)}")
    twice = [each for each in by_position[: len(args)] if each in keywords]
    if twice:
        faults.append(f"is given {_join_words(twice)} twice")
    return f"{label} {' and '.join(faults)}: its arguments are ({_list_parameters(parameters)})"


def _explain_extra_positionals(
    method: str, extra: tuple[Any, ...], parameters: Mapping[str, inspect.Parameter]
) -> str:
    """Return how to give what was given by position, in front of a blank; empty if unknown."""
    if "clock" in parameters:
        return ' (the callback comes second, and which time it goes by is clock="wall" or "stream")'
    if "joiner" in parameters and any(map(callable, extra)):
        if "foreign_key" in parameters:
            return " (a foreign key is foreign_key=lambda key, value: ...)"
        return (
            " (what finds the row of a global table is key=lambda key, value: ..., and the window "
            "of two streams within=timedelta(...))"
        )
    if _are_topics(extra) and (way := _explain_more_topics(parameters)):
        return way
    ways = [
        [f"{each}=" for each in _BY_POSITION.get(type(value).__name__, ()) if each in parameters]
        for value in extra
    ]
    if "joiner" in parameters and any(type(value).__name__ == "timedelta" for value in extra):
        ways.append(["within="])
    told = list(dict.fromkeys(each for found in ways for each in found))
    return f" (the others are given by name, as {_join_words(told)})" if told else ""


def _are_topics(extra: tuple[Any, ...]) -> bool:
    return all(type(value).__name__ in ("str", "TopicPattern") for value in extra)


def _explain_more_topics(parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return how a method takes several topics; empty for one whose first parameter is none.

    A method that takes one topic, and can name a store, may be given the store's name.
    """
    first = next(iter(parameters.values()), None)
    if first is None or first.name != "topic" or "store" in parameters:
        return ""
    if "Sequence" in str(first.annotation):
        return " (several topics are one list: [topic, topic])"
    return " (it takes one topic: call it once for each)"


def _list_parameters(parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return the names of parameters as a signature has them, without types and defaults."""
    shown: list[str] = []
    is_after_star = False
    for name, each in parameters.items():
        if each.kind is each.VAR_POSITIONAL:
            is_after_star = True
            shown.append(f"*{name}")
            continue
        if each.kind is each.VAR_KEYWORD:
            shown.append("...")
            continue
        if each.kind is each.KEYWORD_ONLY and not is_after_star:
            is_after_star = True
            shown.append("*")
        shown.append(name if each.default is each.empty else f"{name}=")
    return ", ".join(shown)


def _join_words(words: list[str]) -> str:
    """Return words with commas, and with `and` before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
