"""Export the public interface: topologies, the DSL and the exactly-once runtime.

Start reading at `app`, then `dsl` and `processes`. Each name is imported when it is first used, so
that a process that needs one part of the package, such as a task of Spark, does not pay for all of
it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streams.hidden_packages import refuse_hidden_packages

if TYPE_CHECKING:
    from state.windowed import Windowed
    from streams import serdes, task_assignment, topics, windows
    from streams.app import App
    from streams.dsl.suppressed import until_time_limit, until_window_closes
    from streams.errors import (
        ApplicationShutdown,
        AuthorizationError,
        BrokerUnavailable,
        ConfigError,
        NotClosed,
        QueryFailed,
        SerdeError,
        StoreNotLocal,
        StoreUnavailable,
        StreamsError,
        TaskAssignmentError,
        TaskCorrupted,
        TaskMigrated,
        TopologyError,
        TopologyRefused,
    )
    from streams.graph.materialized import Store
    from streams.operators.lateness import LateRecord
    from streams.processes.local_threads import StoreLag, TaskMetadata, ThreadMetadata
    from streams.processor.context import ProcessorContext, RecordContext, RecordMetadata
    from streams.processor.global_store import ReadOnlyGlobalStore
    from streams.processor.processor import Processor
    from streams.processor.record import Record
    from streams.processor.transformer import ValueTransformer
    from streams.queries.read_only_stores import (
        ReadOnlyKeyValueStore,
        ReadOnlySessionStore,
        ReadOnlyVersionedStore,
        ReadOnlyWindowStore,
    )
    from streams.queries.routed_store import QueryResult, RoutedStore
    from streams.queries.stale_bounds import StaleBounds
    from streams.queries.store_hosts import StoreHost
    from streams.queries.store_locations import StoreIterator
    from streams.runtime.restoring.progress import RestoreListener, SuspendReason
    from streams.settings.config import StreamsConfig
    from streams.settings.exception_handlers import ErrorContext, dead_letter
    from streams.testing.driver import TopologyTestDriver

refuse_hidden_packages()

__all__ = [
    "App",
    "ApplicationShutdown",
    "AuthorizationError",
    "BrokerUnavailable",
    "ConfigError",
    "ErrorContext",
    "LateRecord",
    "NotClosed",
    "Processor",
    "ProcessorContext",
    "ProcessorSupplier",
    "QueryFailed",
    "QueryResult",
    "ReadOnlyGlobalStore",
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyVersionedStore",
    "ReadOnlyWindowStore",
    "Record",
    "RecordContext",
    "RecordMetadata",
    "RestoreListener",
    "RoutedStore",
    "SerdeError",
    "StaleBounds",
    "Store",
    "StoreHost",
    "StoreIterator",
    "StoreLag",
    "StoreNotLocal",
    "StoreUnavailable",
    "StreamsConfig",
    "StreamsError",
    "SuspendReason",
    "TaskAssignmentError",
    "TaskCorrupted",
    "TaskMetadata",
    "TaskMigrated",
    "ThreadMetadata",
    "TopologyError",
    "TopologyRefused",
    "TopologyTestDriver",
    "ValueTransformer",
    "ValueTransformerSupplier",
    "Windowed",
    "dead_letter",
    "serdes",
    "task_assignment",
    "topics",
    "until_time_limit",
    "until_window_closes",
    "windows",
]

_MODULES = {
    "App": "streams.app",
    "ApplicationShutdown": "streams.errors",
    "AuthorizationError": "streams.errors",
    "BrokerUnavailable": "streams.errors",
    "ConfigError": "streams.errors",
    "ErrorContext": "streams.settings.exception_handlers",
    "LateRecord": "streams.operators.lateness",
    "NotClosed": "streams.errors",
    "Processor": "streams.processor.processor",
    "ProcessorContext": "streams.processor.context",
    "ProcessorSupplier": "streams.processor.processor_supplier",
    "QueryFailed": "streams.errors",
    "QueryResult": "streams.queries.routed_store",
    "ReadOnlyGlobalStore": "streams.processor.global_store",
    "ReadOnlyKeyValueStore": "streams.queries.read_only_stores",
    "ReadOnlySessionStore": "streams.queries.read_only_stores",
    "ReadOnlyVersionedStore": "streams.queries.read_only_stores",
    "ReadOnlyWindowStore": "streams.queries.read_only_stores",
    "Record": "streams.processor.record",
    "RecordContext": "streams.processor.context",
    "RecordMetadata": "streams.processor.context",
    "RestoreListener": "streams.runtime.restoring.progress",
    "RoutedStore": "streams.queries.routed_store",
    "SerdeError": "streams.errors",
    "StaleBounds": "streams.queries.stale_bounds",
    "Store": "streams.graph.materialized",
    "StoreHost": "streams.queries.store_hosts",
    "ThreadMetadata": "streams.processes.local_threads",
    "TaskMetadata": "streams.processes.local_threads",
    "StoreLag": "streams.processes.local_threads",
    "StoreIterator": "streams.queries.store_locations",
    "StoreNotLocal": "streams.errors",
    "StoreUnavailable": "streams.errors",
    "StreamsConfig": "streams.settings.config",
    "StreamsError": "streams.errors",
    "TaskAssignmentError": "streams.errors",
    "SuspendReason": "streams.runtime.restoring.progress",
    "TaskCorrupted": "streams.errors",
    "TaskMigrated": "streams.errors",
    "TopologyError": "streams.errors",
    "TopologyRefused": "streams.errors",
    "TopologyTestDriver": "streams.testing.driver",
    "ValueTransformer": "streams.processor.transformer",
    "ValueTransformerSupplier": "streams.processor.processor_supplier",
    "Windowed": "state.windowed",
    "dead_letter": "streams.settings.exception_handlers",
    "until_time_limit": "streams.dsl.suppressed",
    "until_window_closes": "streams.dsl.suppressed",
}
"""The module of each public name that is no module itself."""


def __getattr__(name: str) -> Any:
    """Import a public name at its first use and keep it as a module global (PEP 562)."""
    if name in _MODULES:
        found = getattr(import_module(_MODULES[name]), name)
    elif name in __all__:
        found = import_module(f"{__name__}.{name}")
    else:
        explain_import(name, __name__, __file__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def explain_import(name: str, package: str, path: str) -> None:
    """Raise ImportError if `name`, which a package lacks, is a class of another library.

    The message says what replaces that class. It can't be an AttributeError's, which is lost:
    `from streams import` replaces it by its own.
    """
    instead = import_module("streams.dsl.other_libraries").IMPORT_NAMES.get(name)
    if instead is None:
        instead = import_module("streams.dsl.java_class_names").JAVA_CLASSES.get(name)
    if instead is not None:
        raise ImportError(f"{package} has no {name!r}: {instead}", name=name, path=path)


def __dir__() -> list[str]:
    """Return the public names, sorted."""
    return sorted(__all__)
