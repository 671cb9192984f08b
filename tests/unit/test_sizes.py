"""Test that the product's files have fewer than 400 lines, and its functions fewer than 70.

The rule is in CONTRIBUTING.md ("How the code reads"). Lines are counted as they are, with blank
lines, comments and docstrings. A nested function counts as lines of the function around it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("millrace", "streams", "state", "coordinator")
FILE_LINES_MAX = 399
FUNCTION_LINES_MAX = 69

EXCEPTIONS = {
    "streams/commands/query_command.py: query_store": "its lines are options",
    "streams/spark/exporting/export_command.py: export": "its lines are options",
    "streams/spark/reconciliation/reconcile_command.py: reconcile": "its lines are options",
}
"""Files (`path`) and functions (`path: Class.function`) that may be longer, and why."""


def find_functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield the name and line count of each function that is not nested in another one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            assert child.end_lineno is not None
            first_line = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            yield prefix + child.name, child.end_lineno - first_line + 1
        elif isinstance(child, ast.ClassDef):
            yield from find_functions(child, f"{prefix}{child.name}.")
        else:
            yield from find_functions(child, prefix)


def find_oversized(path: str, source: str) -> Iterator[tuple[str, int]]:
    """Yield the file and the functions that are too long, each with its line count."""
    line_count = len(source.splitlines())
    if line_count > FILE_LINES_MAX:
        yield path, line_count
    for name, function_line_count in find_functions(ast.parse(source)):
        if function_line_count > FUNCTION_LINES_MAX:
            yield f"{path}: {name}", function_line_count


def test_files_and_functions_of_the_product_are_short() -> None:
    oversized = {
        name: line_count
        for root in PRODUCT
        for file in sorted((ROOT / root).rglob("*.py"))
        for name, line_count in find_oversized(str(file.relative_to(ROOT)), file.read_text())
    }
    too_long = {name: count for name, count in oversized.items() if name not in EXCEPTIONS}
    assert too_long == {}
    assert EXCEPTIONS.keys() - oversized.keys() == set(), "exceptions that nothing needs any more"


def make_function(line_count: int, *, indent: str = "") -> str:
    """Return the source of a function `f` of so many lines."""
    return f"{indent}def f():\n" + f"{indent}    pass\n" * (line_count - 1)


@pytest.mark.parametrize(
    ("source", "oversized"),
    [
        ("\n" * 399, []),
        ("\n" * 400, [("a.py", 400)]),
        (make_function(69), []),
        (make_function(70), [("a.py: f", 70)]),
        ("@g\n" + make_function(69), [("a.py: f", 70)]),
        ("async " + make_function(70), [("a.py: f", 70)]),
        ("class C:\n" + make_function(70, indent="    "), [("a.py: C.f", 70)]),
        ("if True:\n" + make_function(70, indent="    "), [("a.py: f", 70)]),
        ("def g():\n" + make_function(69, indent="    "), [("a.py: g", 70)]),
        ("def g():\n" + make_function(68, indent="    "), []),
    ],
)
def test_what_is_too_long_is_found(source: str, oversized: list[tuple[str, int]]) -> None:
    assert list(find_oversized("a.py", source)) == oversized
