"""Choose the medium of stores for which the application has not said one (KIP-591)."""

from __future__ import annotations

from dataclasses import replace

from streams.graph.nodes import Graph, StoreSpec


def keep_default_stores_in_memory(graph: Graph) -> Graph:
    """Return the graph with the stores in memory whose medium was left to `default_store`."""
    stores = {name: _keep_in_memory(spec) for name, spec in graph.stores.items()}
    tables = {
        name: replace(table, store=_keep_in_memory(table.store))
        for name, table in graph.global_tables.items()
    }
    return replace(graph, stores=stores, global_tables=tables)


def _keep_in_memory(spec: StoreSpec) -> StoreSpec:
    return replace(spec, persistent=False) if spec.has_default_medium else spec
