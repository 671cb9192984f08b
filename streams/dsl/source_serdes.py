"""Find the serdes with which an application reads a topic, and refuse a topic without them."""

from __future__ import annotations

from typing import Any

from streams.dsl.builder import require_serde
from streams.dsl.routing import check_topic_name
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.serdes import Serde
from streams.serdes.serde import KeySerde, ValueSerde


def resolve_source_serdes(
    store: str | Store | None, key: Serde[Any] | None, value: Serde[Any] | None
) -> tuple[KeySerde | None, ValueSerde | None]:
    """Return the table's serdes, each replaced by the store's own where it is None."""
    if isinstance(store, Store):
        return key or store.key, value or store.value
    return key, value


def require_source_serdes(
    step: str,
    topic: object,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    *,
    accepts_pattern: bool = False,
) -> tuple[KeySerde, ValueSerde]:
    """Return the serdes of a source after checking its topic and that both are given.

    If the step `accepts_pattern`, the message on a wrong topic says how a pattern is given.
    Raises TopologyError naming the step.
    """
    check_topic_name(step, topic, accepts_pattern=accepts_pattern)
    return require_serdes(step, f"topic {topic!r}", key, value)


def require_serdes(
    step: str, read: str, key: Serde[Any] | None, value: Serde[Any] | None
) -> tuple[KeySerde, ValueSerde]:
    """Return the serdes of a source after checking that both are given.

    `read` is what it reads, for the message. Raises TopologyError naming the step.
    """
    for what, serde in (("key", key), ("value", value)):
        if serde is None:
            raise TopologyError(
                f"step {step!r} needs a {what} serde to read {read}: pass {what}=serdes...."
            )
    return require_serde(key, "key", step), require_serde(value, "value", step)
