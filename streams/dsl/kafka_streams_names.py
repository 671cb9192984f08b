"""Help users of the DSL who call a method that a stream, a table or a group does not have.

The error says what to write instead; names of Kafka Streams in Java's spelling are understood, and
those of Quix Streams and Faust (`streams.dsl.other_libraries`). A
table is not a stream and a group is neither: most methods that one lacks are on the next.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from streams.common.call_hints import wrap_methods_to_explain_calls
from streams.dsl.builder import require_serde
from streams.dsl.other_libraries import (
    APP_NAMES,
    DRIVER_NAMES,
    DRIVER_TOPIC_NAMES,
    RUNNING_NAMES,
    STREAM_NAMES,
    TOPOLOGY_BUILDER_NAMES,
    WINDOWED_NAMES,
)

_GROUP_FIRST = "first group_by(...) or group_by_key()"
_TO_STREAM_FIRST = "first to_stream()"
_AGGREGATE_FIRST = "first count(), reduce(...) or aggregate(...)"
_BEFORE_GROUPING = "do it before grouping"
_GLOBAL_TABLE_USE = (
    "every worker has all of it, to join streams with; app.table(...) is one to work on"
)
_AGGREGATIONS = ("aggregate", "cogroup", "count", "reduce")
_STREAM_METHODS = (
    "flat_map", "flat_map_values", "for_each", "map", "merge", "peek", "print", "process",
    "process_values", "repartition", "select_key", "split", "to",
)  # fmt: skip
_TRANSFORMATIONS = ("filter", "filter_not", "map_values", *_STREAM_METHODS)

_COGROUPED_ALTERNATIVES = {
    **dict.fromkeys(_TRANSFORMATIONS, f"{_BEFORE_GROUPING}, or first aggregate(...)"),
    **dict.fromkeys(("suppress", "to_stream", "to_table"), "first aggregate(...)"),
    **dict.fromkeys(("count", "reduce"), "aggregate(...), by the functions of the groups"),
}

ALTERNATIVES: dict[str, dict[str, str]] = {
    "App": APP_NAMES,
    "RunningApp": RUNNING_NAMES,
    "Stream": {
        **STREAM_NAMES,
        **dict.fromkeys((*_AGGREGATIONS, "windowed_by"), _GROUP_FIRST),
        "suppress": f"tables hold updates back: {_GROUP_FIRST}, and aggregate",
        "transform_values": "process_values(...) is for streams",
        "to_stream": "it is one",
        # Methods of earlier versions of Kafka Streams.
        "branch": 'split({"name": predicate}, default="rest") returns the branches',
        "through": "repartition(), or to(topic) and app.stream(topic)",
        "transform": "process(...)",
        "flat_transform": "process(...)",
        "flat_transform_values": "process_values(...)",
    },
    "Table": {
        **dict.fromkeys(_STREAM_METHODS, _TO_STREAM_FIRST),
        **dict.fromkeys(_AGGREGATIONS, "first group_by(lambda key, value: (new_key, new_value))"),
        "group_by_key": "group_by(lambda key, value: (key, value)), or to_stream().group_by_key()",
        "windowed_by": "windows are for streams: first to_stream().group_by_key()",
        "to_table": "it is one",
        "queryable_store_name": 'the name that was given, as in store="name"',
    },
    "Grouped": {
        **WINDOWED_NAMES,
        **dict.fromkeys(_TRANSFORMATIONS, f"{_BEFORE_GROUPING}, or {_AGGREGATE_FIRST}"),
        **dict.fromkeys(("suppress", "to_stream", "to_table"), _AGGREGATE_FIRST),
        **dict.fromkeys(("group_by", "group_by_key"), "it is grouped"),
    },
    "WindowedGroup": {
        **WINDOWED_NAMES,
        "emit_strategy": 'count(emit="on_close"), and so for reduce and aggregate',
        **dict.fromkeys(_TRANSFORMATIONS, f"{_BEFORE_GROUPING}, or {_AGGREGATE_FIRST}"),
        **dict.fromkeys(("suppress", "to_stream", "to_table"), _AGGREGATE_FIRST),
        **dict.fromkeys(("group_by", "group_by_key", "windowed_by"), "it is grouped, by windows"),
    },
    "Cogrouped": _COGROUPED_ALTERNATIVES,
    "WindowedCogroup": _COGROUPED_ALTERNATIVES,
    "GroupedTable": {
        **dict.fromkeys(_TRANSFORMATIONS, f"{_BEFORE_GROUPING}, or {_AGGREGATE_FIRST}"),
        **dict.fromkeys(("suppress", "to_stream"), _AGGREGATE_FIRST),
        "windowed_by": "windows are for streams: group the table's to_stream()",
    },
    "GlobalTable": {
        **dict.fromkeys(
            (
                *_TRANSFORMATIONS,
                *_AGGREGATIONS,
                "group_by",
                "join",
                "left_join",
                "to_stream",
                "suppress",
            ),
            _GLOBAL_TABLE_USE,
        ),
        "queryable_store_name": "store.name",
    },
    "TopologyBuilder": TOPOLOGY_BUILDER_NAMES,
    "TopologyTestDriver": DRIVER_NAMES,
    "DriverTopic": DRIVER_TOPIC_NAMES,
}


class DslBase:
    """Checks the serdes of streams, tables and groups, and explains methods that they lack.

    Kafka Streams' own spelling (`mapValues`) is understood, and that of Quix Streams and Faust.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Let the methods of streams, tables and groups explain calls that don't fit."""
        super().__init_subclass__()
        wrap_methods_to_explain_calls(cls)

    def __post_init__(self) -> None:
        """Check the serdes where they are given, not where they are needed first.

        Raises TopologyError.
        """
        for what in ("key", "value"):
            if (serde := getattr(self, f"_{what}", None)) is not None:
                require_serde(serde, what, _find_step_name(self))

    def __repr__(self) -> str:
        """Return the class and the step that it comes from, for messages."""
        return f"{type(self).__name__} of {_find_step_name(self)!r}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what to call instead of `name`."""
            raise create_missing_attribute_error(self, name)

        def __getitem__(self, name: object) -> Any:
            """Raise TypeError that says what to call instead of an index or an iteration."""
            raise TypeError(
                f"{self!r} is a description, and has no records to index or to iterate: "
                "filter(lambda key, value: ...) and map_values(lambda value: ...) are called with "
                "each record"
            )

        def __setitem__(self, name: object, value: object) -> None:
            """Raise TypeError that says what to call instead of an assignment."""
            raise TypeError(
                f"{self!r} is a description, and has no fields to set: "
                "map_values(lambda row: {**row, ...}) returns the new value of each record"
            )


def _find_step_name(dsl_object: Any) -> str:
    """Return the name of the step that a stream, a table or a group comes from."""
    node = getattr(dsl_object, "_node", None)
    return str(node.name if node is not None else dsl_object._view.table.name)


def create_missing_attribute_error(owner: object, name: str) -> AttributeError:
    """Return the error for an attribute that `owner` does not have, with what to call instead.

    A name with an underscore in front is Python's own, which asks for it while it copies, say.
    """
    if name.startswith("_"):
        return AttributeError(name)
    return AttributeError(
        f"{owner!r} has no {name!r}{compose_missing_method_hint(type(owner), name)}"
    )


def compose_missing_method_hint(dsl_class: type, name: str) -> str:
    """Return what to call instead of the missing method `name`; empty if nothing is like it."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    for each in (name, snake, {"foreach": "for_each"}.get(name, "")):
        if told := ALTERNATIVES.get(dsl_class.__name__, {}).get(each):
            return f": {told}"
        if each and hasattr(dsl_class, each):
            return f": did you mean {each}?"
    close = difflib.get_close_matches(snake, [n for n in dir(dsl_class) if n[0] != "_"], n=1)
    return f": did you mean {close[0]}?" if close else ""
