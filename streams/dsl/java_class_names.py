"""Say what replaces the other classes of Kafka Streams, by the names that imports would have.

Those that most applications import are in `streams.dsl.other_libraries`; a test looks whether any
class of Kafka Streams is in neither.
"""

from __future__ import annotations

from collections.abc import Mapping


def _name_classes(classes: str, instead: str) -> Mapping[str, str]:
    """Return what replaces each of several classes, whose names have blanks between."""
    return dict.fromkeys(classes.split(), instead)


_HEADERS = "stores keep no headers: put what is needed into the value"
_READS = "running.query(name) and running.store(name) have the reads as methods"
_HANDLER = '"fail", "skip", dead_letter("topic") or a function of an ErrorContext, as a setting'
_STORE_KINDS = "kinds of stores can't be added: a Processor with a Store"

JAVA_CLASSES: Mapping[str, str] = {
    **_name_classes(
        "Aggregator ForeachAction ForeachProcessor Initializer KeyValueMapper Merger Predicate "
        "Reducer Punctuator",
        "any function, as a lambda, is one",
    ),
    **_name_classes("ValueMapper ValueMapperWithKey", "any function of the value is one"),
    **_name_classes(
        "ValueJoiner ValueJoinerWithKey",
        "any function is one: join(other, joiner), and with_key=True hands it the key",
    ),
    "ValueJoinerWithStreamAndMappedKey": (
        "any function is one; with_key=True hands it the stream's key, and the mapped key is what "
        "key=lambda key, value: ... of join returns"
    ),
    **_name_classes("Transformer TransformerSupplier", "Processor, by stream.process(...)"),
    **_name_classes(
        "BranchedKStream", 'stream.split({"name": predicate}, default="rest") returns the branches'
    ),
    **_name_classes("CogroupedKStream", "group.cogroup(aggregator) returns it"),
    **_name_classes("KGroupedStream KGroupedTable", "group_by(...) returns it"),
    **_name_classes(
        "SessionWindowedKStream TimeWindowedKStream SessionWindowedCogroupedKStream "
        "TimeWindowedCogroupedKStream",
        "windowed_by(windows.tumbling(...)) and the like return it",
    ),
    **_name_classes(
        "SessionWindowedDeserializer SessionWindowedSerializer TimeWindowedDeserializer "
        "TimeWindowedSerializer WindowedSerdes",
        "serdes.windowed(...) and serdes.session_windowed(...)",
    ),
    "Printed": "arguments of print: label, and to= for a file",
    "Window": "Windowed, which has start_ms and end_ms",
    "Windows": "streams.windows; windows of another kind are a Processor with a store",
    "ProcessingContext": "ProcessorContext",
    "FixedKeyProcessorContext": "ProcessorContext",
    "InternalFixedKeyRecordFactory": "Record(key, value, timestamp_ms)",
    "ReadOnlyRecord": "Record, which never changes",
    **_name_classes(
        "WrappedFixedKeyProcessorSupplier WrappedProcessorSupplier",
        "App(..., processor_wrapper=function)",
    ),
    "Cancellable": "context.schedule(...) returns the function that cancels",
    "ConnectedStoreProvider": "stores of a Processor's class, or of a ProcessorSupplier",
    "TaskId": "context.task_id, as text",
    "To": 'context.forward(record, to="child")',
    "FailOnInvalidTimestamp": 'timestamp_extractor="fail_on_invalid_timestamp"',
    "LogAndSkipOnInvalidTimestamp": 'timestamp_extractor="log_and_skip_on_invalid_timestamp"',
    "UsePartitionTimeOnInvalidTimestamp": (
        'timestamp_extractor="use_partition_time_on_invalid_timestamp"'
    ),
    **_name_classes("StandbyUpdateListener StateRestoreListener", "RestoreListener"),
    # Stores.
    **_name_classes(
        "BatchingStateRestoreCallback CommitCallback StateRestoreCallback StateStore "
        "StateStoreContext TimestampedBytesStore VersionedBytesStore",
        _STORE_KINDS,
    ),
    **_name_classes(
        "AggregationWithHeaders DslStoreFormat HeadersBytesStore SessionStoreWithHeaders "
        "TimestampedKeyValueStoreWithHeaders TimestampedWindowStoreWithHeaders "
        "ValueTimestampHeaders",
        _HEADERS,
    ),
    **_name_classes(
        "HeadersBytesStoreSupplier KeyValueBytesStoreSupplier SessionBytesStoreSupplier "
        "StoreSupplier VersionedBytesStoreSupplier WindowBytesStoreSupplier",
        "Store: Store.persistent(name), in_memory, window, session and versioned",
    ),
    **_name_classes(
        "BuiltInDslStoreSuppliers DslKeyValueParams DslSessionParams DslStoreSuppliers "
        "DslWindowParams",
        'App(..., default_store="rocksdb") or "in_memory"',
    ),
    **_name_classes(
        "KeyValueStore SessionStore VersionedKeyValueStore WindowStore",
        "context.store(name) of a Processor returns it; ReadOnlyKeyValueStore and the like are "
        "those that running.store(name) returns",
    ),
    "TimestampedKeyValueStore": "any store has times: entry(key) returns value and timestamp_ms",
    "TimestampedWindowStore": "any store has times: entry(key, start_ms) returns both",
    "ValueAndTimestamp": "entry(key) of a store returns it: value and timestamp_ms",
    "VersionedRecord": "get(key) of a versioned store returns it",
    **_name_classes(
        "KeyValueIterator WindowStoreIterator ReadOnlyRecordIterator VersionedRecordIterator",
        "reads of ranges return iterators, which need no close",
    ),
    "QueryableStoreType": 'running.store("name", ReadOnlyWindowStore) and the like',
    "RocksDBConfigSetter": "Store.persistent(name, rocksdb=lambda options: ...)",
    "StateSerdes": "key=serdes.... and value=serdes.... of a Store",
    # Queries.
    **_name_classes(
        "FailureReason KeyQuery MultiVersionedKeyQuery Position PositionBound Query QueryConfig "
        "RangeQuery ResultOrder StateQueryRequest StateQueryResult TimestampedKeyQuery "
        "TimestampedKeyWithHeadersQuery TimestampedRangeQuery TimestampedRangeWithHeadersQuery "
        "TimestampedWindowKeyWithHeadersQuery TimestampedWindowRangeWithHeadersQuery "
        "VersionedKeyQuery WindowKeyQuery WindowRangeQuery",
        _READS,
    ),
    # Life of an application.
    "CloseOptions": "running.close(timeout, leave_group=False)",
    "ClientInstanceIds": "librdkafka gives no program these ids (KIP-714)",
    "GroupProtocol": 'App(..., group_protocol="streams"), "classic" or "auto"',
    "HostInfo": "App(..., application_server=...); metadata_for_store(name) returns addresses",
    "KafkaClientSupplier": "clients are librdkafka's; tests have the TopologyTestDriver",
    **_name_classes(
        "KeyQueryMetadata StreamsMetadata",
        "running.metadata_for_key(name, key) and metadata_for_store(name)",
    ),
    "LagInfo": "StoreLag, which running.all_local_store_partition_lags() returns",
    "StreamsMetrics": "running.metrics(), and App(..., metrics_port=...)",
    "TopologyConfig": "keyword arguments of App, or StreamsConfig",
    "TopologyDescription": 'app.describe(format="json")',
    # Assignment.
    **_name_classes(
        "ApplicationState AssignmentConfigs KafkaStreamsAssignment KafkaStreamsState TaskInfo "
        "TaskTopicPartition",
        "streams.task_assignment has it",
    ),
    "ProcessId": "text: the id of a state directory",
    "StickyTaskAssignor": "tasks are always sticky, and follow their state (KIP-441)",
    "TaskAssignmentUtils": "functions of streams.task_assignment",
    "TaskAssignor": "App(..., task_assignor=function)",
    # Handlers and errors.
    **_name_classes("DeserializationExceptionHandler", f"deserialization_handler: {_HANDLER}"),
    **_name_classes(
        "LogAndContinueProcessingExceptionHandler LogAndFailProcessingExceptionHandler "
        "ProcessingExceptionHandler",
        f"processing_handler: {_HANDLER}",
    ),
    **_name_classes(
        "DefaultProductionExceptionHandler ProductionExceptionHandler",
        f"production_handler: {_HANDLER}",
    ),
    "ErrorHandlerContext": "ErrorContext",
    "StreamsException": "StreamsError",
    "TaskAssignmentException": "TaskAssignmentError",
    "TaskCorruptedException": "TaskCorrupted",
    "TaskMigratedException": "TaskMigrated",
    "TopologyException": "TopologyError",
    **_name_classes(
        "InvalidStateStoreException InvalidStateStorePartitionException "
        "StateStoreMigratedException StateStoreNotAvailableException UnknownStateStoreException",
        "StoreUnavailable and StoreNotLocal; a store that there is not is a ConfigError",
    ),
    **_name_classes(
        "BrokerNotFoundException InternalTopicsAlreadySetupException LockException "
        "MisconfiguredInternalTopicException MissingInternalTopicsException "
        "MissingSourceTopicException ProcessorStateException StreamsNotStartedException "
        "StreamsRebalancingException StreamsStoppedException TaskIdFormatException "
        "UnknownTopologyException",
        "StreamsError and ConfigError: errors are named by their recovery",
    ),
}
"""The replacements of those classes of Kafka Streams that few applications import."""
