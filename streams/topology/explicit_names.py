"""Refuse internal topics and stores that the application has not named (KIP-1111).

A generated name has the number of its step in it, which changes with the steps before it: then the
store begins empty, and its old changelog stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from streams.errors import TopologyError
from streams.graph.nodes import Graph
from streams.topology.build import Topology
from streams.topology.name_remedies import can_name_by_store_argument


def check_explicit_names(topology: Topology, generated_names: Collection[str]) -> None:
    """Raise TopologyError, with all names, for stores and repartition topics without a given one.

    `generated_names` are those from which such names are made.
    """
    stores = {spec.name for sub in topology.subtopologies for spec in sub.stores}
    stores |= {table.store.name for table in topology.global_tables}
    unnamed_stores = _find_generated_names(stores, generated_names)
    by_argument = [name for name in unnamed_stores if can_name_by_store_argument(name)]
    parts = (
        ("stores (store=...)", by_argument),
        (
            "stores of joins and of suppress (name=...)",
            [name for name in unnamed_stores if name not in by_argument],
        ),
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


def check_internal_names(names: Mapping[str, str], graph: Graph) -> None:
    """Raise TopologyError for names in `internal_names` that replace nothing.

    A name that is misspelt would leave a store or a topic as it is, which begins empty.
    """
    if names != graph.internal_names:
        raise TopologyError(
            "internal_names is read where steps are added: give it in Python, "
            "App(..., internal_names={...}), or in MILLRACE_INTERNAL_NAMES"
        )
    unused = sorted(names.keys() - graph.replaceable_names)
    if unused:
        there = ", ".join(map(repr, sorted(graph.replaceable_names))) or "none"
        raise TopologyError(
            f"internal_names has {', '.join(map(repr, unused))}, which this application does not "
            "have. It can replace the names of stores of joins of streams, and of topics and "
            f"stores of foreign-key joins: here {there}. Others are given by store= and name= of "
            "their step"
        )


def _find_generated_names(names: Iterable[str], generated_names: Collection[str]) -> list[str]:
    """Return the names that contain a generated one, sorted."""
    return sorted(n for n in names if any(each in n for each in generated_names))
