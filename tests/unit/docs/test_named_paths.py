"""Test that the pages name files, modules and methods that are there, and no former names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]
PAGES = [HOME / "README.md", HOME / "CONTRIBUTING.md", *sorted((HOME / "docs").rglob("*.md"))]
FOLDERS = "benchmarks|changelog.d|coordinator|docs|examples|millrace|ops|state|streams|tests"
A_PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*)`")
A_MODULE = re.compile(r"`((?:coordinator|state|streams|tests)(?:\.\w+)+)`")
A_METHOD = re.compile(r"`([A-Z]\w+)\([^`]*?\)\.(\w+)\(")
PACKAGES = ("coordinator", "state", "streams")
A_BLOCK = re.compile(r"```.*?\n(.*?)```", re.DOTALL)
PLACEHOLDERS = {"streams/commands/NAME_command.py"}
NO_MODULES = {
    "streams.runtime.clients.librdkafka",  # a logger
    "streams.assignment.interval.ms",  # a setting of Kafka's groups, as the next ones
    "streams.assignor.name",
    "streams.heartbeat.interval.ms",
    "streams.initial.rebalance.delay.ms",
    "streams.acceptable.recovery.lag",
    "streams.assignor.offload.enable",
    "streams.num.standby.replicas",
    "streams.num.warmup.replicas",
    "streams.rack.aware.assignment.tags",
    "streams.task.offset.interval.ms",
    "streams.session.timeout.ms",
    "state.get",  # a method in an example of another library, as the next one
    "state.set",
}
FORMER_NAMES = re.compile(
    r"`make books`|\bmixed_group\b|\bspark/books\b|\bmillrace topics create\b|\bthe books\b"
)


def find_missing_paths(text: str) -> Iterator[str]:
    """Yield the paths of the repository that a text names, and that are neither file nor folder."""
    for path in A_PATH.findall(text):
        places = (HOME / path, HOME / f"{path}.py")
        if path not in PLACEHOLDERS and not any(each.exists() for each in places):
            yield path


def find_missing_modules(text: str) -> Iterator[str]:
    """Yield the modules, and the names in them, that a text names and that are not there."""
    for name in A_MODULE.findall(text):
        if name not in NO_MODULES and not is_there(name):
            yield name


def find_missing_methods(text: str) -> Iterator[str]:
    """Yield the calls of a method of a class that a text shows, and that no such class has."""
    for name, method in A_METHOD.findall(text):
        if method not in list_methods(name):
            yield f"{name}.{method}"


@cache
def list_methods(name: str) -> set[str]:
    """Return the methods of the classes of this name, without those that they inherit."""
    return {
        member.name
        for package in PACKAGES
        for path in (HOME / package).rglob("*.py")
        if f"class {name}" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and node.name == name
        for member in node.body
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def is_there(name: str) -> bool:
    """Return whether a dotted name is a package, a module or a name in the text of one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        place = HOME.joinpath(*parts[:count])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.exists():
            rest = parts[count:]
            return not rest or re.search(rf"\b{rest[0]}\b", file.read_text()) is not None
    return False


@pytest.mark.parametrize("find", [find_missing_paths, find_missing_modules, find_missing_methods])
def test_what_the_pages_name_is_there(find: Callable[[str], Iterator[str]]) -> None:
    missing = {
        str(page.relative_to(HOME)): found
        for page in PAGES
        if (found := sorted(set(find(page.read_text()))))
    }
    assert missing == {}


def test_no_page_has_a_former_name() -> None:
    found = [
        (str(page.relative_to(HOME)), match[0])
        for page in PAGES
        for match in FORMER_NAMES.finditer(page.read_text())
    ]
    assert found == []


def test_the_examples_of_the_pages_import_from_millrace() -> None:
    found = [
        (str(page.relative_to(HOME)), line)
        for page in PAGES
        for block in A_BLOCK.findall(page.read_text())
        for line in block.splitlines()
        if line.startswith(("from streams import", "import streams"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("see `streams/gone.py`", ["streams/gone.py"]),
        ("see `streams/app.py`, `streams/app` and `streams/`", []),
        ("see `streams.gone.App`", ["streams.gone.App"]),
        ("see `streams.app.Gone`", ["streams.app.Gone"]),
        ("see `streams.app.App` and `streams.app`", []),
        ("| `LedgerRuns(spark, entries).gone(...)` |", ["LedgerRuns.gone"]),
        ("| `LedgerRuns(spark, entries).compare_records(...)` |", []),
    ],
)
def test_a_name_of_nothing_is_found(text: str, missing: list[str]) -> None:
    assert [
        *find_missing_paths(text),
        *find_missing_modules(text),
        *find_missing_methods(text),
    ] == missing
