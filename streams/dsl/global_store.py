"""Declare a global store that a user's processor fills (Kafka Streams' addGlobalStore)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.dsl.builder import InternalStreamsBuilder
from streams.dsl.processor_stores import list_supplier_stores
from streams.dsl.routing import check_topic_name
from streams.dsl.source_serdes import require_source_serdes
from streams.errors import TopologyError
from streams.graph.global_store_spec import GlobalStoreSpec
from streams.graph.materialized import Store
from streams.graph.nodes import StoreKind
from streams.processor.processor_supplier import ProcessorSupplier
from streams.serdes import Serde


def declare_global_store(
    builder: InternalStreamsBuilder,
    store: Store,
    topic: str,
    processor: Callable[[], Any] | ProcessorSupplier,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    name: str | None,
) -> None:
    """Declare the store, with the processor that fills it. Raises TopologyError."""
    if not isinstance(store, Store):
        raise TopologyError(f"add_global_store takes a Store, got {store!r}")
    step = builder.graph.choose_step_name("PROCESSOR", name or f"{store.name}-updater")
    check_topic_name(step, topic)
    if store.spec_fields["ttl_ms"] is not None:
        raise TopologyError(f"store {store.name!r} is a global one, and can have no ttl=")
    spec = store.create_spec(key, value, kinds=(StoreKind.KEY_VALUE,), step=step)
    key, value = require_source_serdes(step, topic, key or spec.key, value or spec.value)
    create_processor, used = list_supplier_stores(step, processor)
    others = [s for s in used if s not in (store, store.name)]
    if others:
        raise TopologyError(
            f"step {step!r} fills the global store {store.name!r}, and can use no other: take "
            f"{others} out of the stores of its processor"
        )
    builder.graph.declare_global_table(
        GlobalStoreSpec(
            name=step,
            topic=topic,
            store=spec,
            key=key,
            value=value,
            create_processor=create_processor,
        )
    )
