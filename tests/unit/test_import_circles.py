"""No modules of a package import each other in a circle, for their types or at run time.

A circle is a set of modules each of which leads to every other by imports. Nobody can read or test
one of them alone.
"""

from __future__ import annotations

import grimp
import pytest

ALLOWED_CIRCLES: dict[str, set[frozenset[str]]] = {
    "state": set(),
    "streams": {
        # The classes of the DSL make each other: a stream's count is a table, a table's changes
        # are a stream.
        frozenset(
            f"streams.dsl.{name}"
            for name in (
                "cogrouped",
                "foreign_key_joins",
                "grouped",
                "grouped_table",
                "routing",
                "stream",
                "stream_joins",
                "stream_stream_joins",
                "stream_table_joins",
                "suppressed",
                "table",
                "table_joins",
                "transform_table_values",
                "windowed",
            )
        )
    },
}


def find_reachable(graph: grimp.ImportGraph, module: str) -> set[str]:
    """Return the modules that `module` leads to by imports; itself only if one leads back."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for imported in graph.find_modules_directly_imported_by(waiting.pop()):
            if imported not in found:
                found.add(imported)
                waiting.append(imported)
    return found


def find_circles(package: str) -> set[frozenset[str]]:
    """Return the circles among the modules of `package`, imports for type checkers included."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)
    reachable = {module: find_reachable(graph, module) for module in graph.modules}
    return {
        frozenset(other for other in others if module in reachable[other])
        for module, others in reachable.items()
        if module in others
    }


@pytest.mark.parametrize("package", ALLOWED_CIRCLES)
def test_modules_import_each_other_in_no_circle_but_those_allowed(package: str) -> None:
    assert find_circles(package) == ALLOWED_CIRCLES[package]
