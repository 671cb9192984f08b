"""Say what replaces a name of another library, by the class that it is asked of.

`streams.dsl.kafka_streams_names` puts these into the error for a method that is missing, and
`streams` into that for an import.
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

RUNNING_NAMES = {
    # Kafka Streams' KafkaStreams.
    "client_instance_ids": "librdkafka gives no program the ids under which it sends metrics to "
    "brokers (KIP-714); logs and the figures of metrics_port name a worker by its client id",
    "add_stream_thread": "add_worker_thread()",
    "remove_stream_thread": "remove_worker_thread()",
    "clean_up": "millrace group reset, and state_cleanup_delay_ms",
    "all_metadata": "metadata_for_store(name)",
    "metadata_for_all_streams_clients": "metadata_for_store(name)",
    "streams_metadata_for_store": "metadata_for_store(name)",
    "query_metadata_for_key": "metadata_for_key(name, key)",
    "set_global_state_restore_listener": "app.start(restore_listener=...)",
    "set_standby_update_listener": "app.start(restore_listener=...), for both",
    "set_state_listener": "app.start(state_listener=...)",
    "set_uncaught_exception_handler": "the setting uncaught_exception_handler",
    "start": "app.start() has returned it, and it runs",
    "wait_for_state": 'wait_for("RUNNING")',
}
_LISTENER = "app.start({kind}_listener=...), or app.run({kind}_listener=...)"
APP_NAMES = {
    # Quix Streams' Application.
    "dataframe": 'app.stream("topic", key=..., value=...), and steps in place of sdf',
    "sdf": 'app.stream("topic", key=..., value=...) returns the stream that steps follow',
    "topic": 'topics are named where they are used: app.stream("topic", key=..., value=...) and '
    '.to("topic")',
    "add_sink": '.to("topic") of a stream, or app.topology_builder().add_sink(...)',
    "add_source": 'app.stream("topic", ...) of a topic that a producer writes, or '
    "app.topology_builder().add_source(...)",
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
    "add_processor": "process(...) of a stream, or app.topology_builder().add_processor(...)",
    "add_global_store": "app.topology_builder().add_global_store(...)",
    "add_read_only_state_store": "app.topology_builder().add_read_only_store(...)",
    "connect_processor_and_state_stores": (
        "app.topology_builder().connect_processor_and_stores(...)"
    ),
    "build": "app.topology()",
    # Kafka Streams' KafkaStreams.
    **{
        name: f"running.{there}, of the handle that app.start() returns"
        for name, there in {
            "add_stream_thread": "add_worker_thread()",
            "all_local_store_partition_lags": "all_local_store_partition_lags()",
            "close": "close()",
            "is_paused": "is_paused",
            "metadata_for_all_streams_clients": "metadata_for_store(name)",
            "metadata_for_local_threads": "metadata_for_local_threads()",
            "metrics": "metrics()",
            "pause": "pause()",
            "query": "query(name)",
            "query_metadata_for_key": "metadata_for_key(name, key)",
            "remove_stream_thread": "remove_worker_thread()",
            "resume": "resume()",
            "state": "state",
            "store": "store(name)",
            "streams_metadata_for_store": "metadata_for_store(name)",
        }.items()
    },
    "clean_up": RUNNING_NAMES["clean_up"],
    "client_instance_ids": RUNNING_NAMES["client_instance_ids"],
    "set_global_state_restore_listener": _LISTENER.format(kind="restore"),
    "set_standby_update_listener": _LISTENER.format(kind="restore"),
    "set_state_listener": _LISTENER.format(kind="state"),
    "set_uncaught_exception_handler": "App(..., uncaught_exception_handler=function)",
}

TOPOLOGY_BUILDER_NAMES = {
    # Kafka Streams' Topology.
    "add_state_store": "add_store(store, *processors)",
    "add_read_only_state_store": "add_read_only_store(store, topic)",
    "connect_processor_and_state_stores": "connect_processor_and_stores(processor, *stores)",
    "describe": "app.describe()",
    "build": "app.topology()",
}

_DSL_CLASS = "steps return it: app.stream(...) a stream, app.table(...) a table"
_WINDOWS_MODULE = "streams.windows: windows.tumbling(...), hopping, sliding, session or unlimited"
_STORE_CLASS = 'store="name", or streams.Store: Store.persistent("name"), Store.in_memory and so on'
_SERDES_OF_STEP = "key=serdes.... and value=serdes.... of the step"
_DRIVER_TOPIC = "TopologyTestDriver(app).topic(...), to pipe records in and to read them"

IMPORT_NAMES = {
    # Kafka Streams.
    "StreamsBuilder": 'App("application-id"), whose stream(...) and table(...) begin a topology',
    "KafkaStreams": "App(...).start(), or run() until SIGTERM",
    "Topology": "App(...).topology() returns it; a Processor is added by stream.process(...)",
    "KStream": _DSL_CLASS,
    "KTable": _DSL_CLASS,
    "GlobalKTable": "app.global_table(...) returns it",
    "Serdes": "streams.serdes: serdes.string, serdes.json and so on",
    "Materialized": _STORE_CLASS,
    "Stores": _STORE_CLASS,
    "Consumed": _SERDES_OF_STEP,
    "Produced": _SERDES_OF_STEP,
    "Grouped": "group_by(..., key=serdes...., name=...)",
    "Joined": "arguments of join(...)",
    "StreamJoined": "arguments of join(...)",
    "JoinWindows": "join(other, joiner, within=...)",
    "Named": "name=... of the step",
    "Branched": 'split({"name": predicate})',
    "Suppressed": "streams.until_time_limit(...) and until_window_closes()",
    "TimeWindows": _WINDOWS_MODULE,
    "SlidingWindows": _WINDOWS_MODULE,
    "SessionWindows": _WINDOWS_MODULE,
    "UnlimitedWindows": _WINDOWS_MODULE,
    "KeyValue": "a tuple (key, value)",
    "Repartitioned": "repartition(name=..., partitions=..., key=..., value=..., partitioner=...)",
    "TableJoined": "name=... and partitioner=... of join(...)",
    "EmitStrategy": 'emit="on_update" or emit="on_close" of an aggregation of windows',
    "AutoOffsetReset": 'offset_reset="earliest", "latest", "none" or a timedelta',
    "TimestampExtractor": "timestamp_extractor=lambda record: time in ms",
    "WallclockTimestampExtractor": 'timestamp_extractor="wallclock"',
    "TopicNameExtractor": "to(lambda record: topic)",
    "StreamPartitioner": "partitioner=lambda key, value, partitions: number",
    "PunctuationType": 'context.schedule(..., clock="stream") or clock="wall"',
    "ContextualProcessor": "Processor, which has self.context",
    "ContextualFixedKeyProcessor": "Processor, for process_values(...)",
    "FixedKeyProcessor": "Processor, for process_values(...)",
    "FixedKeyProcessorSupplier": "ProcessorSupplier",
    "FixedKeyRecord": "Record",
    "ValueTransformerWithKey": "ValueTransformer",
    "ValueTransformerWithKeySupplier": "ValueTransformerSupplier",
    "ProcessorWrapper": "App(..., processor_wrapper=function)",
    "StoreBuilder": _STORE_CLASS,
    "QueryableStoreTypes": 'running.store("name", ReadOnlyWindowStore) and the like',
    "StoreQueryParameters": 'running.store("name") and running.query("name")',
    "LogAndContinueExceptionHandler": 'deserialization_handler="skip"',
    "LogAndFailExceptionHandler": 'deserialization_handler="fail"',
    "StreamsUncaughtExceptionHandler": "uncaught_exception_handler=function",
    "MockProcessorContext": "from millrace.testing import MockProcessorContext",
    "TestRecord": "Record",
    "TestInputTopic": _DRIVER_TOPIC,
    "TestOutputTopic": _DRIVER_TOPIC,
    # Quix Streams.
    "Application": 'App("application-id")',
    "StreamingDataFrame": _DSL_CLASS,
    "State": "a Processor that has a store",
}
"""What replaces classes of other libraries, by the names with which they would be imported."""

DRIVER_NAMES = {
    # Kafka Streams' TopologyTestDriver.
    "pipe_input": 'topic("input").pipe(key, value)',
    "create_input_topic": 'topic("input"), and its pipe(key, value)',
    "create_output_topic": 'topic("output"), and its read(), read_all() or read_table()',
    "read_output": 'topic("output").read()',
    "read_record": 'topic("output").read()',
    "produced_topic_names": "topics",
    "get_all_state_stores": "stores",
    "get_state_store": 'store("name")',
    "get_key_value_store": 'store("name")',
    "get_window_store": 'store("name", ReadOnlyWindowStore)',
    "get_session_store": 'store("name", ReadOnlySessionStore)',
    "get_timestamped_key_value_store": 'store("name"), and its entry(key)',
    "get_timestamped_window_store": 'store("name"), and its entry(key, start_ms)',
    "get_versioned_key_value_store": 'store("name", ReadOnlyVersionedStore)',
    **dict.fromkeys(
        (
            "get_session_store_with_headers",
            "get_timestamped_key_value_store_with_headers",
            "get_timestamped_window_store_with_headers",
        ),
        'store("name"): stores keep no headers',
    ),
    "advance_wall_clock_time": "advance_wall_clock(ms=...)",
}

DRIVER_TOPIC_NAMES = {
    # Kafka Streams' TestInputTopic and TestOutputTopic.
    "pipe_input": "pipe(key, value)",
    "pipe_key_value_list": "pipe_many([(key, value), ...])",
    "pipe_record_list": "pipe_many([...])",
    "pipe_value_list": "pipe_many([(key, value), ...])",
    "read_value": "read().value",
    "read_key_value": "read(), which has key and value",
    "get_queue_size": "len(read_all()), or is_empty",
}
