"""No modules of a package import each other in a circle, not even for type checking.

import-linter knows the layers between packages; this knows circles between single modules.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import grimp
import pytest

# By package, the sets of modules that may import each other, each with its reason.
ALLOWED_CIRCLES: dict[str, list[frozenset[str]]] = {
    "coordinator": [],
    "millrace": [],
    "ops": [],
    "state": [],
    "streams": [
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
                "stream_processing",
                "stream_stream_joins",
                "stream_table_joins",
                "suppressed",
                "table",
                "table_joins",
                "table_table_joins",
                "transform_table_values",
                "windowed",
            )
        )
    ],
}


def find_circles(package: str) -> set[frozenset[str]]:
    """Return the sets of modules that reach each other by imports (strongly connected)."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)
    circles = set()
    for module in graph.modules:
        others = graph.find_upstream_modules(module) & graph.find_downstream_modules(module)
        if others:
            circles.add(frozenset({module, *others}))
    return circles


def describe_circles(circles: Iterable[frozenset[str]]) -> list[str]:
    return sorted(", ".join(sorted(circle)) for circle in circles)


@pytest.mark.parametrize("package", sorted(ALLOWED_CIRCLES))
def test_modules_import_each_other_only_in_allowed_circles(package: str) -> None:
    allowed = ALLOWED_CIRCLES[package]
    circles = find_circles(package)
    assert not describe_circles(c for c in circles if not any(c <= each for each in allowed))
    unused = [each for each in allowed if not any(c <= each for c in circles)]
    assert not describe_circles(unused), "nobody needs these any more"


def test_a_circle_through_an_import_for_type_checking_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "planted_circle"
    package.mkdir()
    sources = {
        "__init__": "",
        "first": "import planted_circle.second\n",
        "second": "from planted_circle.third import name\n",
        "third": "if TYPE_CHECKING:\n    from planted_circle.first import name\n",
        "outside": "import planted_circle.first\n",
    }
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert describe_circles(find_circles("planted_circle")) == [
        "planted_circle.first, planted_circle.second, planted_circle.third"
    ]
