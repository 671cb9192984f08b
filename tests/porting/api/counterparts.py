"""Say what Millrace has for each class and method of Kafka Streams.

A class has one entry, which holds for all of its methods that have none of their own. Where an
entry names classes of Python, a method of the same name there (in Python's spelling) is found by
itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from state.key_value import KeyValueStore
from state.session import SessionStore
from state.versioned import VersionedStore
from state.window import WindowStore
from state.windowed import Windowed
from streams import (
    App,
    ProcessorSupplier,
    Record,
    TopologyTestDriver,
    ValueTransformer,
    ValueTransformerSupplier,
)
from streams.dsl.cogrouped import Cogrouped, WindowedCogroup
from streams.dsl.global_table import GlobalTable
from streams.dsl.grouped import Grouped
from streams.dsl.grouped_table import GroupedTable
from streams.dsl.stream import Stream
from streams.dsl.table import Table
from streams.dsl.topology_builder import TopologyBuilder
from streams.dsl.windowed import WindowedGroup
from streams.processes.running import RunningApp
from streams.processor.context import FixedKeyContext, ProcessorContext
from streams.processor.processor import Processor
from streams.runtime.restoring.progress import RestoreListener
from streams.task_assignment import (
    ApplicationState,
    AssignmentConfigs,
    KafkaStreamsAssignment,
    KafkaStreamsState,
    TaskInfo,
    TaskTopicPartition,
)
from streams.testing import DriverTopic

State = Literal["same", "other way", "not there"]
SAME: State = "same"
OTHER: State = "other way"
NOT: State = "not there"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """Says what there is for a Java class: its state and text, and those of its methods.

    `python` are the classes among whose methods one of the same name is looked for.
    """

    state: State
    text: str
    python: tuple[type, ...] = ()
    methods: Mapping[str, tuple[State, str]] = field(default_factory=dict)


def _inner(note: str) -> Counterpart:
    return Counterpart(OTHER, note)


_FUNCTION = Counterpart(OTHER, "any function, as a lambda")
_FUNCTION_OF_THE_STEP = _FUNCTION
_NO_HEADERS = Counterpart(NOT, "stores keep no headers (decision 114): put them into the value")
_QUERY = Counterpart(
    OTHER, "`running.query(name)` and `running.store(name)` have the reads as methods"
)
_SUPPLIER = Counterpart(OTHER, "`Store.persistent`, `in_memory`, `window`, `session`, `versioned`")
_METADATA = Counterpart(OTHER, "`running.metadata_for_store(name)`, `running.health()`")
_ERROR = Counterpart(OTHER, "errors are named by their recovery: `streams.errors`")
_HANDLER = Counterpart(
    OTHER, '`"fail"`, `"skip"`, `dead_letter(topic)` or a function of an `ErrorContext`'
)
_RESET_POLICY = Counterpart(
    OTHER, "`auto_offset_reset`, `offset_reset=` of a source: text, or there a duration"
)
_DESCRIPTION = Counterpart(OTHER, '`app.describe(format="json")`')
_TIMES = Counterpart(OTHER, "`timestamp_extractor=` of a source, `default_timestamp_extractor`")
_SETTINGS = Counterpart(OTHER, "settings are checked when they are given ([settings](settings.md))")
_WINDOW_SERDES = Counterpart(OTHER, "`serdes.windowed`, `serdes.session_windowed`")
_MAP_VALUES = "`{}(mapper)`; with the key: `process_values(processor)`"
_TOPIC_STEPS = {"branch": (OTHER, "`split({name: predicate})`")}

COUNTERPARTS: Mapping[str, Counterpart] = {
    # Applications
    "StreamsBuilder": Counterpart(
        OTHER,
        "`App`",
        (App,),
        {
            "build": (OTHER, "`app.topology()`"),
            "addStateStore": (OTHER, "`app.add_store(store)`"),
            "addGlobalStore": (OTHER, "`app.topology_builder().add_global_store(...)`"),
        },
    ),
    "Topology": Counterpart(
        OTHER,
        "`app.topology_builder()`",
        (TopologyBuilder,),
        {
            "addStateStore": (OTHER, "`add_store(store, *processors)`"),
            "addReadOnlyStateStore": (OTHER, "`add_read_only_store(store, topic)`"),
            "connectProcessorAndStateStores": (OTHER, "`connect_processor_and_stores(...)`"),
            "describe": (OTHER, "`app.describe()`"),
        },
    ),
    "KafkaStreams": Counterpart(
        OTHER,
        "`app.start()` returns the `RunningApp`; `app.run()` runs until a signal",
        (RunningApp,),
        {
            "start": (OTHER, "`app.start()`"),
            "addStreamThread": (OTHER, "`running.add_worker_thread()`"),
            "removeStreamThread": (OTHER, "`running.remove_worker_thread()`"),
            "cleanUp": (OTHER, "`millrace group reset`; `state_cleanup_delay_ms`"),
            "clientInstanceIds": (
                NOT,
                "librdkafka gives no program the ids under which it sends metrics (KIP-714)",
            ),
            "metadataForAllStreamsClients": (OTHER, "`running.metadata_for_store(name)`"),
            "streamsMetadataForStore": (OTHER, "`running.metadata_for_store(name)`"),
            "queryMetadataForKey": (OTHER, "`running.metadata_for_key(name, key)`"),
            "setGlobalStateRestoreListener": (
                OTHER,
                "`restore_listener=` of `app.start` and `app.run`",
            ),
            "setStandbyUpdateListener": (
                OTHER,
                "`restore_listener=` of `app.start` and `app.run`, for both",
            ),
            "query": (OTHER, "`running.query(name)`"),
            "setStateListener": (OTHER, "`state_listener=` of `app.start` and `app.run`"),
            "setUncaughtExceptionHandler": (OTHER, "the setting `uncaught_exception_handler`"),
        },
    ),
    "KafkaStreams$State": Counterpart(OTHER, "`running.state`, with the same names"),
    "KafkaStreams$StateListener": _inner("`state_listener=` of `app.start` and `app.run`"),
    "KafkaStreams$CloseOptions": _inner("`running.close(leave_group=...)`"),
    "CloseOptions": _inner("`running.close(leave_group=...)`"),
    "CloseOptions$GroupMembershipOperation": _inner("`running.close(leave_group=...)`"),
    "KafkaClientSupplier": Counterpart(NOT, "clients are librdkafka's; tests have the test driver"),
    "ClientInstanceIds": Counterpart(
        NOT,
        "librdkafka gives no program the ids under which it sends metrics (KIP-714)",
    ),
    "KeyQueryMetadata": _METADATA,
    "StreamsMetadata": _METADATA,
    "TaskMetadata": _METADATA,
    "ThreadMetadata": _METADATA,
    "LagInfo": Counterpart(OTHER, "`running.health()` and metrics have the lags"),
    "StreamsMetrics": Counterpart(OTHER, "`running.metrics()`, `metrics_port`"),
    "StreamsConfig": Counterpart(
        OTHER, "keyword arguments of `App`, or `StreamsConfig`: names with underscores"
    ),
    "StreamsConfig$InternalConfig": _SETTINGS,
    "TopologyConfig": _SETTINGS,
    "TopologyConfig$InternalConfig": _SETTINGS,
    "TopologyConfig$TaskConfig": _SETTINGS,
    "GroupProtocol": Counterpart(OTHER, "the setting `group_protocol`"),
    "AutoOffsetReset": _RESET_POLICY,
    "Topology$AutoOffsetReset": _RESET_POLICY,
    "DslStoreFormat": _NO_HEADERS,
    "StoreQueryParameters": Counterpart(OTHER, "`running.store(name, view_class)`"),
    "KeyValue": Counterpart(OTHER, "a tuple `(key, value)`"),
    "TopologyDescription*": _DESCRIPTION,
    # Streams and tables
    "kstream.KStream": Counterpart(
        OTHER,
        "`Stream`",
        (Stream,),
        {
            "foreach": (OTHER, "`for_each(action)`"),
            "mapValues": (OTHER, _MAP_VALUES.format("map_values")),
            "flatMapValues": (OTHER, _MAP_VALUES.format("flat_map_values")),
        },
    ),
    "kstream.KTable": Counterpart(
        OTHER,
        "`Table`",
        (Table,),
        {
            "queryableStoreName": (OTHER, 'the `store="name"` that was given'),
            "mapValues": (
                OTHER,
                "`map_values(mapper)`; with the key: `transform_values(transformer)`",
            ),
        },
    ),
    "kstream.GlobalKTable": Counterpart(
        OTHER,
        "`GlobalTable`",
        (GlobalTable,),
        {"queryableStoreName": (OTHER, "`table.store.name`")},
    ),
    "kstream.KGroupedStream": Counterpart(OTHER, "`Grouped`", (Grouped,)),
    "kstream.KGroupedTable": Counterpart(OTHER, "`GroupedTable`", (GroupedTable,)),
    "kstream.CogroupedKStream": Counterpart(OTHER, "`Cogrouped`", (Cogrouped,)),
    "kstream.*WindowedCogroupedKStream": Counterpart(
        OTHER, "`WindowedCogroup`", (WindowedCogroup,)
    ),
    "kstream.*WindowedKStream": Counterpart(
        OTHER,
        "`WindowedGroup`",
        (WindowedGroup,),
        {"emitStrategy": (OTHER, '`emit="on_close"` of count, reduce and aggregate')},
    ),
    "kstream.BranchedKStream": Counterpart(OTHER, "`split({name: predicate}, default=name)`"),
    "kstream.Branched": Counterpart(OTHER, "`split({name: predicate}, default=name)`"),
    "kstream.Consumed": Counterpart(
        OTHER,
        "`key=`, `value=`, `name=`, `timestamp_extractor=`, `offset_reset=` of `stream` and "
        "`table`",
        methods={"withOffsetResetPolicy": (OTHER, "`offset_reset=` of `stream` and `table`")},
    ),
    "kstream.Produced": Counterpart(OTHER, "`key=`, `value=`, `partitioner=`, `name=` of `to`"),
    "kstream.Grouped": Counterpart(OTHER, "`key=`, `value=`, `name=` of `group_by`"),
    "kstream.Joined": Counterpart(OTHER, "`key=`, `value=`, `name=`, `grace=` of `join`"),
    "kstream.StreamJoined": Counterpart(
        OTHER,
        "`key=`, `this_value=`, `other_value=`, `store=`, `other_store=`, `name=` of `join`",
        methods={
            "as": (OTHER, "`name=` of `join`: it names the stores as in Java, and the steps too"),
            "withStoreName": (
                OTHER,
                "`name=` of `join`: it names the stores as in Java, and the steps too",
            ),
            "withName": (
                OTHER,
                "`name=`, which names the stores too; generated names by `store=`, `other_store=`",
            ),
        },
    ),
    "kstream.TableJoined": Counterpart(
        OTHER,
        "`name=`, `other_partitioner=` of `join`",
        methods={
            "withPartitioner": (OTHER, "not needed: answers name the partition of their row"),
        },
    ),
    "kstream.Materialized*": Counterpart(OTHER, '`store="name"`, `Store.default(...)` and others'),
    "kstream.Named": Counterpart(OTHER, "`name=` of every step"),
    "kstream.Repartitioned": Counterpart(
        OTHER, "`partitions=`, `partitioner=`, `key=`, `value=`, `name=` of `repartition`"
    ),
    "kstream.Printed": Counterpart(OTHER, "`label` and `to=` of `print`"),
    "kstream.EmitStrategy*": Counterpart(OTHER, '`emit="on_update"`, `emit="on_close"`'),
    "kstream.Suppressed*": Counterpart(
        OTHER, "`until_window_closes(...)`, `until_time_limit(...)`, with the buffer's limits"
    ),
    "kstream.JoinWindows": Counterpart(OTHER, "`within=`, `before=`, `after=`, `grace=` of `join`"),
    "kstream.TimeWindows": Counterpart(OTHER, "`windows.tumbling`, `windows.hopping`"),
    "kstream.SlidingWindows": Counterpart(OTHER, "`windows.sliding(difference, grace=)`"),
    "kstream.SessionWindows": Counterpart(OTHER, "`windows.session(gap, grace=)`"),
    "kstream.UnlimitedWindows": Counterpart(OTHER, "`windows.unlimited(start=)`"),
    "kstream.Windows": Counterpart(NOT, "windows of one's own kind: a processor with a store"),
    "kstream.Window": Counterpart(OTHER, "`Windowed` has `start_ms` and `end_ms`"),
    "kstream.Windowed": Counterpart(
        SAME,
        "`Windowed`",
        (Windowed,),
        {"key": (SAME, "`key`"), "window": (OTHER, "`start_ms`, `end_ms`")},
    ),
    "kstream.*WindowedSer*": _WINDOW_SERDES,
    "kstream.*WindowedDeserializer": _WINDOW_SERDES,
    "kstream.Aggregator": _FUNCTION_OF_THE_STEP,
    "kstream.Foreach*": _FUNCTION_OF_THE_STEP,
    "kstream.Initializer": _FUNCTION_OF_THE_STEP,
    "kstream.KeyValueMapper": _FUNCTION_OF_THE_STEP,
    "kstream.Merger": _FUNCTION_OF_THE_STEP,
    "kstream.Predicate": _FUNCTION_OF_THE_STEP,
    "kstream.Reducer": _FUNCTION_OF_THE_STEP,
    "kstream.ValueJoinerWithStreamAndMappedKey": Counterpart(
        OTHER,
        "any function; `with_key=True` hands it the stream's key, and the mapped key is what "
        "`key=` of `join` returns",
    ),
    "kstream.ValueJoiner*": Counterpart(OTHER, "any function; `with_key=True` hands it the key"),
    "kstream.ValueMapper*": Counterpart(
        OTHER, "any function of the value; for the key too take `map` or a processor"
    ),
    "kstream.ValueTransformerWithKey": Counterpart(
        OTHER, "`ValueTransformer`, for `table.transform_values`", (ValueTransformer,)
    ),
    "kstream.ValueTransformerWithKeySupplier": Counterpart(
        OTHER,
        "`ValueTransformerSupplier`; or the transformer's class, or a function",
        (ValueTransformerSupplier,),
    ),
    "kstream.ValueTransformer*": Counterpart(
        NOT, "`transform` is gone in Kafka Streams 4: `process`"
    ),
    "kstream.Transformer*": Counterpart(NOT, "`transform` is gone in Kafka Streams 4: `process`"),
    # Processors
    "processor.api.Processor": Counterpart(SAME, "`Processor`", (Processor,)),
    "processor.api.FixedKeyProcessor": Counterpart(
        OTHER, "`Processor`, for `process_values`", (Processor,)
    ),
    "processor.api.Contextual*": Counterpart(OTHER, "`Processor` has `self.context`", (Processor,)),
    "processor.api.*Wrapp*": Counterpart(
        OTHER, "the setting `processor_wrapper`, a function: also for steps of the DSL"
    ),
    "processor.api.*ProcessorSupplier": Counterpart(
        SAME, "`ProcessorSupplier`; or the processor's class, or a function", (ProcessorSupplier,)
    ),
    "processor.api.ProcessorContext": Counterpart(SAME, "`ProcessorContext`", (ProcessorContext,)),
    "processor.api.FixedKeyProcessorContext": Counterpart(
        OTHER, "`context` of a processor in `process_values`", (FixedKeyContext,)
    ),
    "processor.api.ProcessingContext": Counterpart(
        OTHER,
        "`ProcessorContext`",
        (ProcessorContext,),
        {
            "appConfigs": (OTHER, "`app.config`"),
            "appConfigsWithPrefix": (OTHER, "`app.config`"),
            "applicationId": (OTHER, "`app.application_id`"),
            "currentStreamTimeMs": (OTHER, "`context.stream_time_ms`"),
            "currentSystemTimeMs": (OTHER, "`context.system_time_ms`"),
            "getStateStore": (OTHER, "`context.store(name)`"),
            "keySerde": (NOT, "there are no default serdes"),
            "valueSerde": (NOT, "there are no default serdes"),
            "metrics": (NOT, "figures of one's own: with prometheus-client, beside the worker's"),
            "stateDir": (OTHER, "`app.config.state_dir`"),
        },
    ),
    "processor.api.Record": Counterpart(
        SAME,
        "`Record`",
        (Record,),
        {
            "key": (SAME, "`key`"),
            "value": (SAME, "`value`"),
            "timestamp": (OTHER, "`timestamp_ms`"),
        },
    ),
    "processor.api.FixedKeyRecord": Counterpart(
        OTHER,
        "`Record`",
        (Record,),
        {
            "key": (SAME, "`key`"),
            "value": (SAME, "`value`"),
            "timestamp": (OTHER, "`timestamp_ms`"),
        },
    ),
    "processor.api.ReadOnlyRecord": Counterpart(OTHER, "`Record`: it never changes"),
    "processor.api.RecordMetadata": Counterpart(SAME, "`context.record_metadata`"),
    "processor.api.InternalFixedKeyRecordFactory": Counterpart(OTHER, "`Record(...)`"),
    "processor.ProcessorContext": Counterpart(
        OTHER, "`ProcessorContext` (this one is the old API)"
    ),
    "processor.RecordContext": Counterpart(
        OTHER,
        "`context.record_context`",
        methods={
            "sourceRawKey": (OTHER, "`ErrorContext` of a handler has the bytes"),
            "sourceRawValue": (OTHER, "`ErrorContext` of a handler has the bytes"),
        },
    ),
    "processor.StateStoreContext": Counterpart(NOT, "kinds of stores can't be added"),
    "processor.StateStore": Counterpart(NOT, "kinds of stores can't be added"),
    "processor.StateRestoreCallback": Counterpart(NOT, "kinds of stores can't be added"),
    "processor.BatchingStateRestoreCallback": Counterpart(NOT, "kinds of stores can't be added"),
    "processor.CommitCallback": Counterpart(NOT, "kinds of stores can't be added"),
    "processor.StateRestoreListener": Counterpart(
        OTHER, "`RestoreListener`, for `app.start(restore_listener=...)`", (RestoreListener,)
    ),
    "processor.StandbyUpdateListener$SuspendReason": Counterpart(SAME, "`SuspendReason`"),
    "processor.StandbyUpdateListener": Counterpart(
        OTHER, "`RestoreListener`, for `app.start(restore_listener=...)`", (RestoreListener,)
    ),
    "processor.ConnectedStoreProvider": Counterpart(
        OTHER, "`stores` of a `ProcessorSupplier`, or of the processor's class"
    ),
    "processor.Punctuator": _FUNCTION_OF_THE_STEP,
    "processor.PunctuationType": Counterpart(OTHER, '`clock="stream"`, `clock="wall"`'),
    "processor.Cancellable": Counterpart(
        OTHER, "`context.schedule(...)` returns the function to call"
    ),
    "processor.To": Counterpart(OTHER, '`context.forward(record, to="child")`'),
    "processor.TaskId": Counterpart(OTHER, "`context.task_id`, as text"),
    "processor.TopicNameExtractor": Counterpart(OTHER, "`to(lambda record: topic)`"),
    "processor.StreamPartitioner": Counterpart(
        OTHER, "`partitioner=lambda key, value, partitions: ...`"
    ),
    "processor.TimestampExtractor": _TIMES,
    "processor.*Timestamp": _TIMES,
    "processor.WallclockTimestampExtractor": _TIMES,
    "processor.assignment.ApplicationState": Counterpart(
        SAME, "`task_assignment.ApplicationState`", (ApplicationState,)
    ),
    "processor.assignment.AssignmentConfigs": Counterpart(
        SAME,
        "`task_assignment.AssignmentConfigs`",
        (AssignmentConfigs,),
        {
            "of": (OTHER, "`assignment_configs` of the ApplicationState"),
            "rackAwareTrafficCost": (OTHER, "`rack_aware_assignment_traffic_cost`"),
            "rackAwareNonOverlapCost": (OTHER, "`rack_aware_assignment_non_overlap_cost`"),
        },
    ),
    "processor.assignment.KafkaStreamsAssignment": Counterpart(
        SAME,
        "`task_assignment.KafkaStreamsAssignment`",
        (KafkaStreamsAssignment,),
        {
            "of": (OTHER, "`KafkaStreamsAssignment(process_id, tasks)`"),
            "followupRebalanceDeadline": (OTHER, "`followup_rebalance_ms`, from now on"),
            "withFollowupRebalance": (OTHER, "`followup_rebalance_ms`, from now on"),
        },
    ),
    "processor.assignment.KafkaStreamsAssignment$*": Counterpart(
        OTHER, '`tasks` has `"active"` or `"standby"` by task id'
    ),
    "processor.assignment.KafkaStreamsState": Counterpart(
        SAME,
        "`task_assignment.KafkaStreamsState`",
        (KafkaStreamsState,),
        {"statefulTasksToLagSums": (OTHER, "`task_lags`")},
    ),
    "processor.assignment.ProcessId": Counterpart(OTHER, "text: the id of a state directory"),
    "processor.assignment.TaskAssignmentUtils": Counterpart(
        OTHER,
        "functions of `task_assignment`",
        methods={
            "identityAssignment": (SAME, "`identity_assignment`"),
            "validateTaskAssignment": (SAME, "`validate_task_assignment`"),
            "defaultStandbyTaskAssignment": (
                NOT,
                "an own assignor places standby tasks; without one `num_standby_replicas` does",
            ),
            **{
                f"optimizeRackAware{kind}Tasks": (
                    NOT,
                    "an own assignor has `rack_ids`; without one there is the strategy's setting",
                )
                for kind in ("Active", "Standby")
            },
        },
    ),
    "processor.assignment.TaskAssignmentUtils$*": Counterpart(
        NOT, "options of the functions of `TaskAssignmentUtils` that are not there"
    ),
    "processor.assignment.TaskAssignor": Counterpart(
        OTHER,
        "the setting `task_assignor`: a function",
        methods={
            "onAssignmentComputed": (
                NOT,
                "the function has returned the assignment; an error of it ends the thread",
            )
        },
    ),
    "processor.assignment.TaskAssignor$AssignmentError": Counterpart(
        SAME, "`task_assignment.AssignmentError`"
    ),
    "processor.assignment.TaskAssignor$TaskAssignment": Counterpart(
        OTHER, "the function returns the assignments themselves"
    ),
    "processor.assignment.TaskInfo": Counterpart(SAME, "`task_assignment.TaskInfo`", (TaskInfo,)),
    "processor.assignment.TaskTopicPartition": Counterpart(
        SAME,
        "`task_assignment.TaskTopicPartition`",
        (TaskTopicPartition,),
        {"topicPartition": (OTHER, "`topic`, `partition`")},
    ),
    "processor.assignment.assignors.StickyTaskAssignor": Counterpart(
        NOT, "tasks are always sticky, and follow their state (KIP-441)"
    ),
    # Stores
    "state.ReadOnlyKeyValueStore": Counterpart(
        SAME,
        "what `running.store` and `driver.store` return",
        (KeyValueStore,),
        {
            "approximateNumEntries": (OTHER, "`approximate_count()`"),
            "readOnly": (OTHER, "`running.store(name)`"),
        },
    ),
    "state.KeyValueStore": Counterpart(
        SAME,
        "`context.store(name)`",
        (KeyValueStore,),
        {"putAll": (OTHER, "`put` for each")},
    ),
    "state.ReadOnlyWindowStore": Counterpart(
        SAME,
        "what `running.store` and `driver.store` return",
        (WindowStore,),
        {"readOnly": (OTHER, "`running.store(name)`")},
    ),
    "state.WindowStore": Counterpart(SAME, "`context.store(name)`", (WindowStore,)),
    "state.ReadOnlySessionStore": Counterpart(
        SAME,
        "what `running.store` and `driver.store` return",
        (SessionStore,),
        {"readOnly": (OTHER, "`running.store(name)`")},
    ),
    "state.SessionStore": Counterpart(SAME, "`context.store(name)`", (SessionStore,)),
    "state.VersionedKeyValueStore": Counterpart(
        SAME,
        "`context.store(name)`",
        (VersionedStore,),
        {"readOnly": (OTHER, "`running.store(name)`")},
    ),
    "state.VersionedRecord": Counterpart(OTHER, "what `get` of a versioned store returns"),
    "state.VersionedRecordIterator": Counterpart(OTHER, "an iterator"),
    "state.TimestampedKeyValueStore": Counterpart(OTHER, "`entry(key)` has the timestamp"),
    "state.TimestampedWindowStore": Counterpart(OTHER, "`entry(key, start_ms)` has the timestamp"),
    "state.ValueAndTimestamp": Counterpart(OTHER, "what `entry` returns"),
    "state.ReadOnlyRecordIterator": Counterpart(OTHER, "an iterator"),
    "state.KeyValueIterator": Counterpart(OTHER, "an iterator of pairs, which needs no close"),
    "state.WindowStoreIterator": Counterpart(OTHER, "an iterator of pairs, which needs no close"),
    "state.Stores": Counterpart(
        OTHER,
        "`Store.persistent`, `in_memory`, `window`, `session`, `versioned`",
        methods={"lruMap": (NOT, "`ttl=` bounds a store; an LRU store would lose rows by size")},
    ),
    "state.StoreBuilder": _SUPPLIER,
    "state.StoreSupplier": _SUPPLIER,
    "state.*BytesStoreSupplier": _SUPPLIER,
    "state.HeadersBytesStore*": _NO_HEADERS,
    "state.*BytesStore": Counterpart(NOT, "kinds of stores can't be added"),
    "state.*WithHeaders": _NO_HEADERS,
    "state.ValueTimestampHeaders": _NO_HEADERS,
    "state.Dsl*": Counterpart(OTHER, '`default_store="rocksdb"`, `"in_memory"`'),
    "state.BuiltInDslStoreSuppliers*": Counterpart(
        OTHER, '`default_store="rocksdb"`, `"in_memory"`'
    ),
    "state.RocksDBConfigSetter": Counterpart(
        OTHER, "`Store.persistent(rocksdb=lambda options: ...)`"
    ),
    "state.StateSerdes": Counterpart(OTHER, "`key=`, `value=` of `Store`"),
    "state.HostInfo": Counterpart(OTHER, "`application_server`; a `StoreHost` has the address"),
    "state.QueryableStoreType*": Counterpart(OTHER, "`running.store(name, view_class)`"),
    # Errors and handlers
    "errors.StreamsUncaughtExceptionHandler*": Counterpart(
        OTHER, "the setting `uncaught_exception_handler`, also as a function of the error"
    ),
    "errors.*ExceptionHandler*": _HANDLER,
    "errors.TaskAssignmentException": Counterpart(SAME, "`TaskAssignmentError`"),
    "errors.ErrorHandlerContext": Counterpart(OTHER, "`ErrorContext`"),
    "errors.*": _ERROR,
    "query.*": _QUERY,
    # Tests
    "TopologyTestDriver": Counterpart(
        SAME,
        "`TopologyTestDriver`",
        (TopologyTestDriver,),
        {
            "advanceWallClockTime": (OTHER, "`driver.advance_wall_clock(ms)`"),
            "createInputTopic": (OTHER, "`driver.topic(name)`"),
            "createOutputTopic": (OTHER, "`driver.topic(name)`"),
            "getAllStateStores": (OTHER, "`driver.stores` has their names"),
            "getStateStore": (OTHER, "`driver.store(name)`"),
            "producedTopicNames": (OTHER, "`driver.topics`"),
            **{
                f"get{kind}Store": (OTHER, "`driver.store(name, view_class)`")
                for kind in ("KeyValue", "Session", "TimestampedKeyValue", "TimestampedWindow")
            },
            "getVersionedKeyValueStore": (OTHER, "`driver.store(name, view_class)`"),
            "getWindowStore": (OTHER, "`driver.store(name, view_class)`"),
            **{
                f"get{kind}StoreWithHeaders": (NOT, "stores keep no headers (decision 114)")
                for kind in ("Session", "TimestampedKeyValue", "TimestampedWindow")
            },
        },
    ),
    "TestInputTopic": Counterpart(
        OTHER,
        "`driver.topic(name)`",
        (DriverTopic,),
        {
            "pipeInput": (OTHER, "`pipe(key, value, timestamp_ms=, headers=)`"),
            "pipeKeyValueList": (OTHER, "`pipe_many(pairs)`"),
            "pipeValueList": (OTHER, "`pipe_many((None, value) for value in values)`"),
            "pipeRecordList": (OTHER, "`pipe_many`, with times and headers in each row"),
        },
    ),
    "TestOutputTopic": Counterpart(
        OTHER,
        "`driver.topic(name)`",
        (DriverTopic,),
        {
            "getQueueSize": (OTHER, "`len(topic.read_all())`"),
            "readKeyValue": (OTHER, "`read()` has key and value"),
            "readValue": (OTHER, "`read().value`"),
        },
    ),
    "test.TestRecord": Counterpart(OTHER, "`Record`"),
    "processor.api.MockProcessorContext*": Counterpart(
        OTHER,
        "`millrace.testing.MockProcessorContext`: `forwarded`, `scheduled`, `commit_count`",
    ),
    "processor.MockProcessorContext*": Counterpart(NOT, "the old API of processors"),
}
