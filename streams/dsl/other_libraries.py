"""Say what replaces a name of Quix Streams or of Faust, by the class that it is asked of.

`streams.dsl.kafka_streams_names` and `App` put these into the error for a method that is missing.
"""

from __future__ import annotations

_QUIX_WINDOW = "group_by_key().windowed_by(windows.{kind}(...)), then count() or aggregate(...)"
_VALUES = "map_values(lambda row: ...), which returns the new value"

STREAM_NAMES = {
    # Quix Streams' StreamingDataFrame.
    "apply": "map_values(function); with expand=True flat_map_values(function); with a state a "
    "Processor that has a store, by process_values(...)",
    "update": "peek(lambda key, value: ...) for effects; a value isn't changed in place, "
    "map_values(function) returns a new one",
    "to_topic": 'to("topic")',
    "sink": 'to("topic"), which Kafka Connect or another consumer reads',
    "concat": "merge(other)",
    "fill": _VALUES,
    "drop": _VALUES,
    "contains": "filter(lambda key, row: ... in row)",
    "set_timestamp": "a Processor that forwards record.with_timestamp(...), by process(...)",
    "set_headers": "a Processor that forwards record.with_headers(...), by process(...)",
    "print_table": "print()",
    "join_asof": "join(table, joiner), where the table has a versioned store",
    "join_interval": "join(other, joiner, within=...)",
    "join_lookup": "join(app.global_table(...), joiner, key=...)",
    "tumbling_window": _QUIX_WINDOW.format(kind="tumbling"),
    "hopping_window": _QUIX_WINDOW.format(kind="hopping"),
    "sliding_window": _QUIX_WINDOW.format(kind="sliding"),
    "session_window": _QUIX_WINDOW.format(kind="session"),
    "agg": "group_by_key(), then aggregate(initializer, function)",
    # Faust's streams.
    "items": "steps take (key, value): filter, map, peek and for_each",
    "events": "a Processor sees each record with its headers and offset, by process(...)",
    "take": "group_by_key().windowed_by(...), or a Processor with a store",
    "sinks": 'to("topic")',
}

WINDOWED_NAMES = {
    "current": 'count(emit="on_update"), and so for reduce and aggregate',
    "final": 'count(emit="on_close"), and so for reduce and aggregate',
    "agg": "aggregate(initializer, function)",
    "sum": "reduce(lambda old, new: old + new), or aggregate(initializer, function)",
    "mean": "aggregate(initializer, function) with a sum and a count, then map_values",
    "min": "reduce(min)",
    "max": "reduce(max)",
    "collect": "aggregate(list, lambda key, value, values: [*values, value])",
}

_STORE_INSTEAD = (
    'a store: of an aggregation, count(store="{name}"), or of a Processor; app.table("topic", ...) '
    "reads a topic as a table"
)
_STEPS_INSTEAD = (
    'app.stream("topic", key=..., value=...) and its steps, or a Processor where each record needs '
    "code of its own"
)
_TIMER_INSTEAD = 'context.schedule(..., clock="wall") of a Processor'

APP_NAMES = {
    # Quix Streams' Application.
    "dataframe": 'app.stream("topic", key=..., value=...), and steps in place of sdf',
    "sdf": 'app.stream("topic", key=..., value=...) returns the stream that steps follow',
    "topic": 'topics are named where they are used: app.stream("topic", key=..., value=...) and '
    '.to("topic")',
    "add_sink": '.to("topic") of a stream',
    "add_source": 'app.stream("topic", ...) of a topic that a producer writes',
    "get_producer": "confluent_kafka.Producer writes topics from outside of an application",
    "get_consumer": "confluent_kafka.Consumer reads topics from outside of an application",
    "clear_state": "docs/operations.md, starting from nothing",
    # Faust's App.
    "agent": _STEPS_INSTEAD,
    "Table": _STORE_INSTEAD.format(name="totals"),
    "SetTable": _STORE_INSTEAD.format(name="sets"),
    "GlobalTable": 'app.global_table("topic", ...)',
    "channel": 'repartition() of a stream, or .to("topic") and app.stream("topic", ...)',
    "timer": _TIMER_INSTEAD,
    "crontab": _TIMER_INSTEAD,
    "task": "what runs in an application is its topology: start other programs beside it",
    "page": "what runs in an application is its topology: running.store(...) reads its stores",
    "service": "what runs in an application is its topology: start other programs beside it",
    "main": "app.run(), or millrace run module:app",
    # Kafka Streams' StreamsBuilder and Topology.
    "add_state_store": "app.add_store(...)",
    "add_processor": "process(...) of a stream",
    "close": "running.close(), of the handle that app.start() returns",
    "build": "app.topology()",
}
