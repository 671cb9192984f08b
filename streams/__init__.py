"""Topologies, the DSL and the exactly-once runtime: what a user imports."""

from state.windowed import Windowed
from streams import serdes
from streams.app import App
from streams.config import StreamsConfig
from streams.dsl.materialized import Store
from streams.errors import ConfigError, SerdeError, StreamsError, TopologyError
from streams.handling import ErrorContext, dead_letter
from streams.processor.context import ProcessorContext, RecordMetadata
from streams.processor.processor import Processor
from streams.processor.record import Record
from streams.runtime.progress import RestoreListener

__all__ = [
    "App",
    "ConfigError",
    "ErrorContext",
    "Processor",
    "ProcessorContext",
    "Record",
    "RecordMetadata",
    "RestoreListener",
    "SerdeError",
    "Store",
    "StreamsConfig",
    "StreamsError",
    "TopologyError",
    "Windowed",
    "dead_letter",
    "serdes",
]
