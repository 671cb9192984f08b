"""Topologies, the DSL and the exactly-once runtime: what a user imports."""

from streams import serdes
from streams.app import App
from streams.config import StreamsConfig
from streams.dsl.materialized import Store
from streams.errors import ConfigError, SerdeError, StreamsError, TopologyError

__all__ = [
    "App",
    "ConfigError",
    "SerdeError",
    "Store",
    "StreamsConfig",
    "StreamsError",
    "TopologyError",
    "serdes",
]
