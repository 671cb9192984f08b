"""Topologies, the DSL and the exactly-once runtime: what a user imports."""

from state.windowed import Windowed
from streams import serdes, windows
from streams.app import App
from streams.config import StreamsConfig
from streams.dsl.materialized import Store
from streams.dsl.suppressed import until_time_limit, until_window_closes
from streams.errors import (
    ApplicationShutdown,
    ConfigError,
    NotClosed,
    SerdeError,
    StoreUnavailable,
    StreamsError,
    TopologyError,
)
from streams.handling import ErrorContext, dead_letter
from streams.operators.lateness import LateRecord
from streams.processor.context import ProcessorContext, RecordContext, RecordMetadata
from streams.processor.processor import Processor
from streams.processor.record import Record
from streams.processor.transformer import ValueTransformer
from streams.runtime.progress import RestoreListener
from streams.testing.driver import TopologyTestDriver

__all__ = [
    "App",
    "ApplicationShutdown",
    "ConfigError",
    "ErrorContext",
    "LateRecord",
    "NotClosed",
    "Processor",
    "ProcessorContext",
    "Record",
    "RecordContext",
    "RecordMetadata",
    "RestoreListener",
    "SerdeError",
    "Store",
    "StoreUnavailable",
    "StreamsConfig",
    "StreamsError",
    "TopologyError",
    "TopologyTestDriver",
    "ValueTransformer",
    "Windowed",
    "dead_letter",
    "serdes",
    "until_time_limit",
    "until_window_closes",
    "windows",
]
