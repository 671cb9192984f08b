"""Export what applications import: `from millrace import App, serdes, windows`.

    millrace            everything that `streams` exports, by the same names
    millrace.testing    the test driver: TopologyTestDriver, DriverTopic
    millrace.broker     EmbeddedBroker, for tests and notebooks
    millrace.spark      cuts, the data source and reconciliation

Start reading at `testing`, the shortest; this file does the same for the first row, lazily. Nothing
is defined here.

Each name is the very object that `streams` or `coordinator` defines, so that both imports can be
mixed, and it is imported when it is first used. What is exported is explained where it is defined.
"""

from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streams import (
        App,
        ApplicationShutdown,
        AuthorizationError,
        BrokerUnavailable,
        ConfigError,
        ErrorContext,
        LateRecord,
        NotClosed,
        Processor,
        ProcessorContext,
        ProcessorSupplier,
        QueryFailed,
        QueryResult,
        ReadOnlyGlobalStore,
        ReadOnlyKeyValueStore,
        ReadOnlySessionStore,
        ReadOnlyVersionedStore,
        ReadOnlyWindowStore,
        Record,
        RecordContext,
        RecordMetadata,
        RestoreListener,
        RoutedStore,
        SerdeError,
        StaleBounds,
        Store,
        StoreHost,
        StoreIterator,
        StoreLag,
        StoreNotLocal,
        StoreUnavailable,
        StreamsConfig,
        StreamsError,
        SuspendReason,
        TaskAssignmentError,
        TaskCorrupted,
        TaskMetadata,
        TaskMigrated,
        ThreadMetadata,
        TopologyError,
        TopologyRefused,
        TopologyTestDriver,
        ValueTransformer,
        ValueTransformerSupplier,
        Windowed,
        dead_letter,
        serdes,
        task_assignment,
        topics,
        until_time_limit,
        until_window_closes,
        windows,
    )


def _refuse_hidden_packages() -> None:
    """Raise ImportError if a module of the user's hides a package of Millrace.

    What looks for them is loaded by its path: `import streams` might run that very module.
    """
    directory = Path(__file__).parents[1] / "streams"
    found = PathFinder.find_spec("hidden_packages", [str(directory)])
    if found is not None and found.loader is not None:
        module = module_from_spec(found)
        found.loader.exec_module(module)
        module.refuse_hidden_packages()


_refuse_hidden_packages()
_streams = import_module("streams")

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

if not TYPE_CHECKING:  # else every name would be one, of type Any

    def __getattr__(name: str) -> Any:
        """Return a public name of `streams`, and keep it as a module global (PEP 562)."""
        if name not in __all__:
            _streams.explain_import(name, __name__, __file__)
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(_streams, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """Return the public names, sorted."""
    return sorted(__all__)
