"""Test that no test assigns or patches a private attribute of another object.

A test that does so goes on to pass when the attribute has lost its meaning, and breaks when it gets
another name. It takes an argument of the constructor, a public attribute or a fake instead. An
object may set its own attributes through `self` or `cls`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PATCHING = frozenset({"delattr", "delitem", "object", "patch", "replaced", "setattr", "setitem"})
PLANTS_BUGS = {
    "simulation/bugs.py": "the transaction coordinator",
    "simulation/runtime/bugs.py": "the runtime",
}
"""Files that plant bugs, and where: a planted bug may set what the object has of its own."""
REPLACING = PATCHING | {"replace", "_replaced"}
"""The functions by which bugs are planted: each takes an object and the name of an attribute."""
LEFT_OVER = {
    "unit/streams/runtime/threads/test_task_executor.py": (
        1,
        "damages the disk that a task has opened",
    ),
}
"""Files in which this many intrusions remain, and why."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def reaches_in(expression: ast.expr) -> bool:
    """Return whether the expression goes through a private attribute of another object."""
    return any(
        isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
        for node in ast.walk(expression)
    )


def is_intrusion(node: ast.expr) -> bool:
    """Return whether the expression assigns, deletes or patches a private attribute."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Store | ast.Del) and reaches_in(node)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store | ast.Del) and reaches_in(node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    return name in PATCHING and any(names_private(each) for each in node.args[:2])


def find_intrusions(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each place that assigns, deletes or patches a private attribute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr) and is_intrusion(node):
            yield node.lineno, ast.unparse(node)


def find_private_seams(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each place that plants a bug by the name of a private attribute."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        names = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
        if node.func.id in REPLACING and any(
            isinstance(name, str) and is_private(name.rpartition(".")[2]) for name in names
        ):
            yield node.lineno, ast.unparse(node)


def names_private(argument: ast.expr) -> bool:
    """Return whether the patched name is private, or belongs to a private attribute."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return is_private(argument.value.rpartition(".")[2])
    return reaches_in(argument)


def test_no_test_assigns_or_patches_a_private_attribute() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("*.py")):
        for line, text in find_intrusions(path.read_text()):
            found.setdefault(str(path.relative_to(TESTS)), []).append(f"{line}: {text}")
    assert found.keys() >= PLANTS_BUGS.keys(), "files that no longer need to be excepted"
    left = {path: places for path, places in found.items() if path not in PLANTS_BUGS}
    allowed = {path: count for path, (count, _) in LEFT_OVER.items()}
    assert {path: len(places) for path, places in left.items()} == allowed, left


def test_a_planted_bug_replaces_what_has_a_public_name() -> None:
    """A string goes on to name what is called otherwise by now, and no tool notices it."""
    found = [
        f"{path.relative_to(TESTS)}:{line}: {text}"
        for path in sorted(TESTS.rglob("*bugs.py"))
        for line, text in find_private_seams(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("replaced(Disk, '_get', make)", 1),
        ("replace(disk, '_get', make)", 1),
        ("_replaced(disk, '_get', lambda real: real)", 1),
        ("replaced(Disk, 'get', make)", 0),
        ("replaced(Disk, '__init__', make)", 0),
        ("text.replace('_a', '_b')", 0),
    ],
)
def test_a_private_seam_is_found(source: str, count: int) -> None:
    assert len(list(find_private_seams(source))) == count


@pytest.mark.parametrize(
    "source",
    [
        "disk._get = read",
        "disk._count += 1",
        "disk._count: int = 1",
        "del disk._get",
        "first, disk._get = 1, 2",
        "self.disk._get = read",
        "log._segments.end = 3",
        "router._routes[(3, 0)] = route",
        "monkeypatch.setattr(disk, '_get', read)",
        "monkeypatch.setattr('state.rocksdb.disk._STEP', 3)",
        "monkeypatch.delattr(disk, '_get')",
        "monkeypatch.setattr(log._segments, 'save', save)",
        "monkeypatch.setitem(router._routes, 3, route)",
        "setattr(disk, '_get', read)",
        "mock.patch('state.rocksdb.disk._STEP')",
        "mock.patch.object(disk, '_get')",
        "replaced(Disk, '_get', read)",
    ],
)
def test_an_intrusion_is_found(source: str) -> None:
    assert len(list(find_intrusions(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "self._get = read",
        "cls._count += 1",
        "self._clock.now_ms = 3",
        "disk.get = read",
        "found = disk._get",
        "found[KafkaError._STATE] = disk",
        "module.__doc__ = 'text'",
        "monkeypatch.setattr(disk, 'get', read)",
        "monkeypatch.setattr('state.rocksdb.disk.Rdict', Database)",
        "monkeypatch.setenv('_MADE', '1')",
    ],
)
def test_what_is_public_or_an_objects_own_is_left_alone(source: str) -> None:
    assert list(find_intrusions(source)) == []
