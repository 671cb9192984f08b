"""Help users of the DSL who call a method that a stream, a table or a group does not have.

The error says what to write instead; names of Kafka Streams in Java's spelling are understood. A
table is not a stream and a group is neither: most methods that one lacks are on the next.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from streams.dsl.builder import known

_GROUP = "first group_by(...) or group_by_key()"
_STREAM = "first to_stream()"
_AGGREGATE = "first count(), reduce(...) or aggregate(...)"
_BEFORE = "do it before grouping"
_WHOLE = "every worker has all of it, to join streams with; app.table(...) is one to work on"
_AGGREGATIONS = ("aggregate", "cogroup", "count", "reduce")
_OF_STREAMS = (
    "flat_map", "flat_map_values", "for_each", "map", "merge", "peek", "print", "process",
    "process_values", "repartition", "select_key", "split", "to",
)  # fmt: skip
_CHANGES = ("filter", "filter_not", "map_values", *_OF_STREAMS)

_COGROUPED = {
    **dict.fromkeys(_CHANGES, f"{_BEFORE}, or first aggregate(...)"),
    **dict.fromkeys(("suppress", "to_stream", "to_table"), "first aggregate(...)"),
    **dict.fromkeys(("count", "reduce"), "aggregate(...), by the functions of the groups"),
}

INSTEAD: dict[str, dict[str, str]] = {
    "Stream": {
        **dict.fromkeys((*_AGGREGATIONS, "windowed_by"), _GROUP),
        "suppress": f"tables hold updates back: {_GROUP}, and aggregate",
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
        **dict.fromkeys(_OF_STREAMS, _STREAM),
        **dict.fromkeys(_AGGREGATIONS, "first group_by(lambda key, value: (new_key, new_value))"),
        "group_by_key": "group_by(lambda key, value: (key, value)), or to_stream().group_by_key()",
        "windowed_by": "windows are for streams: first to_stream().group_by_key()",
        "to_table": "it is one",
    },
    "Grouped": {
        **dict.fromkeys(_CHANGES, f"{_BEFORE}, or {_AGGREGATE}"),
        **dict.fromkeys(("suppress", "to_stream", "to_table"), _AGGREGATE),
        **dict.fromkeys(("group_by", "group_by_key"), "it is grouped"),
    },
    "WindowedGroup": {
        **dict.fromkeys(_CHANGES, f"{_BEFORE}, or {_AGGREGATE}"),
        **dict.fromkeys(("suppress", "to_stream", "to_table"), _AGGREGATE),
        **dict.fromkeys(("group_by", "group_by_key", "windowed_by"), "it is grouped, by windows"),
    },
    "Cogrouped": _COGROUPED,
    "WindowedCogroup": _COGROUPED,
    "GroupedTable": {
        **dict.fromkeys(_CHANGES, f"{_BEFORE}, or {_AGGREGATE}"),
        **dict.fromkeys(("suppress", "to_stream"), _AGGREGATE),
        "windowed_by": "windows are for streams: group the table's to_stream()",
    },
    "GlobalTable": dict.fromkeys(
        (*_CHANGES, *_AGGREGATIONS, "group_by", "join", "left_join", "to_stream", "suppress"),
        _WHOLE,
    ),
}


class Instead:
    """Base of streams, tables and groups: checks their serdes and explains missing methods.

    Kafka Streams' own spelling (`mapValues`) is understood.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the serdes where they are given, not where they are needed first.

        Raises TopologyError.
        """
        for what in ("key", "value"):
            if (serde := getattr(self, f"_{what}", None)) is not None:
                known(serde, what, _step(self))

    def __repr__(self) -> str:
        """Return the class and the step that it comes from, for messages."""
        return f"{type(self).__name__} of {_step(self)!r}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what to call instead of `name`."""
            if name.startswith("_"):
                raise AttributeError(name)
            raise AttributeError(f"{self!r} has no {name!r}{_hint(type(self), name)}")


def _step(of: Any) -> str:
    """Return the name of the step that a stream, a table or a group comes from."""
    node = getattr(of, "_node", None)
    return str(node.name if node is not None else of._view.table.name)


def _hint(kind: type, name: str) -> str:
    """Return what to call instead of the missing method `name`; empty if nothing is like it."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    for each in (name, snake, {"foreach": "for_each"}.get(name, "")):
        if told := INSTEAD.get(kind.__name__, {}).get(each):
            return f": {told}"
        if each and hasattr(kind, each):
            return f": did you mean {each}?"
    close = difflib.get_close_matches(snake, [n for n in dir(kind) if n[0] != "_"], n=1)
    return f": did you mean {close[0]}?" if close else ""
