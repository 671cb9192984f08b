"""Describe a global store that a user's processor fills from a topic (`add_global_store`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streams.graph.nodes import GlobalTableSpec
from streams.serdes import Serde
from streams.serdes.serde import KeySerde, ValueSerde


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalStoreSpec(GlobalTableSpec):
    """Describes a global table whose rows a processor writes, of the records of its topic.

    `key` and `value` are the serdes of the topic, those of the store may be others.
    `create_processor` makes one for each worker.
    """

    key: Serde[Any]
    value: Serde[Any]
    create_processor: Callable[[], Any]


def find_topic_serdes(table: GlobalTableSpec) -> tuple[KeySerde, ValueSerde]:
    """Return the serdes of the keys and the values of a global table's topic."""
    if isinstance(table, GlobalStoreSpec):
        return table.key, table.value
    return table.store.key, table.store.value
