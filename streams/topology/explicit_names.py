"""Refuse internal topics and stores that the application has not named (KIP-1111).

A generated name has the number of its step in it, which changes with the steps before it: then the
store begins empty, and its old changelog stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streams.errors import TopologyError
from streams.topology.build import Topology


def check_explicit_names(topology: Topology, generated_names: Collection[str]) -> None:
    """Raise TopologyError, with all names, for stores and repartition topics without a given one.

    `generated_names` are those from which such names are made.
    """
    stores = {spec.name for sub in topology.subtopologies for spec in sub.stores}
    stores |= {table.store.name for table in topology.global_tables}
    parts = (
        ("stores (store=...)", _find_generated_names(stores, generated_names)),
        (
            "repartition topics (name=...)",
            _find_generated_names(topology.repartition_topics, generated_names),
        ),
    )
    unnamed = [f"{what} {', '.join(map(repr, found))}" for what, found in parts if found]
    if unnamed:
        raise TopologyError(
            "ensure_explicit_internal_resource_naming is set, and these have generated names, "
            f"which change with the steps before them: {'; '.join(unnamed)}. Name the steps that "
            "they belong to"
        )


def _find_generated_names(names: Iterable[str], generated_names: Collection[str]) -> list[str]:
    """Return the names that contain a generated one, sorted."""
    return sorted(n for n in names if any(each in n for each in generated_names))
