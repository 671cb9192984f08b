"""Test that docs/architecture.md names all packages, layers, decisions and traces as they are."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]
PAGE = (HOME / "docs" / "architecture.md").read_text()
PACKAGES = ("coordinator", "millrace", "state", "streams")
TRACES = PAGE.partition("## Traces\n")[2]
TRACE_STEPS = re.findall(r"^\d+\. .*(?:\n {3,}.*)*", TRACES, re.MULTILINE)
STEP = re.compile(r"\d+\. `([\w/]+\.py)`((?:,\s+`[\w.]+`)+):\s")
CLOCK_OR_THREAD = re.compile(
    r"\btime\.(?:time|monotonic|sleep|time_ns|monotonic_ns)\(|\bThread\(|\bThreadPoolExecutor\("
)
RECIPES = PAGE.partition("## Recipes\n")[2].partition("## Traces\n")[0]
LAYERS_CONTRACTS = [
    contract
    for contract in tomllib.loads((HOME / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    if contract["type"] == "layers"
]


def list_definitions(path: Path) -> set[str]:
    """Return the functions, classes, methods (`Class.method`) and constants of a module."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name):
                names.add(name)
                names |= {
                    f"{name}.{each.name}"
                    for each in node.body
                    if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                }
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_a_row(package: str) -> None:
    layers = PAGE.partition(f"### The layers of {package}\n")[2].partition("\n#")[0]
    rows = [*re.findall(r"^\| `(\S+)` \|", PAGE, re.MULTILINE)]
    for row in re.findall(r"^\| (`.+?) \|", layers, re.MULTILINE):
        rows += [f"{package}/{name}" for name in re.findall(r"`(\w+)`", row)]
    there = {path.parent for path in (HOME / package).rglob("*/__init__.py")}
    assert {str(path.relative_to(HOME)) for path in there} - set(rows) == set()


def test_there_are_seven_traces_and_nothing_else_is_numbered_there() -> None:
    assert len(re.findall(r"^### ", TRACES, re.MULTILINE)) == 7
    assert len(TRACE_STEPS) == len(re.findall(r"^\d+\. ", TRACES, re.MULTILINE)) > 60


@pytest.mark.parametrize("step", TRACE_STEPS, ids=lambda step: step.partition(",")[0])
def test_the_file_and_the_functions_of_a_trace_step_exist(step: str) -> None:
    found = STEP.match(step)
    assert found is not None, "a step begins with `path`, `function` and a colon"
    named = set(re.findall(r"`([\w.]+)`", found[2]))
    assert named - list_definitions(HOME / found[1]) == set()


def test_the_files_and_names_of_the_recipes_exist() -> None:
    files = {p for p in re.findall(r"`([\w/]+\.py)`", RECIPES) if "NAME" not in p}
    assert {path for path in files if not (HOME / path).is_file()} == set()
    named = re.findall(r"`([\w.]+)`\s+(?:in|of)\s+`([\w/]+\.py)`", RECIPES)
    assert len(named) > 5
    wrong = {(name, p) for name, p in named if name not in list_definitions(HOME / p)}
    assert wrong == set()


def test_the_modules_with_a_clock_or_threads_of_their_own_are_those_of_the_page() -> None:
    decision = PAGE.partition("8. **Clock, scheduler")[2].partition("9. **")[0]
    named = [re.escape(each) for each in re.findall(r"`([\w/]+)`", decision)]
    allowed = re.compile(rf"(?:{'|'.join(named)})(?:/.*)?\.py")
    found = {
        str(path.relative_to(HOME))
        for package in PACKAGES
        for path in (HOME / package).rglob("*.py")
        if CLOCK_OR_THREAD.search(path.read_text())
    }
    assert len(found) > 10
    assert {path for path in found if not allowed.fullmatch(path)} == set()


@pytest.mark.parametrize("contract", LAYERS_CONTRACTS, ids=lambda contract: contract["name"])
def test_the_layers_of_the_page_are_those_that_import_linter_checks(
    contract: dict[str, list[str]],
) -> None:
    (package,) = contract["containers"]
    section = PAGE.partition(f"### The layers of {package}\n")[2].partition("\n#")[0]
    layers = [
        set(re.findall(r"`(\w+)`", layer))
        for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
        for layer in row.split(", then ")
    ]
    assert layers == [set(re.findall(r"\w+", each)) for each in reversed(contract["layers"])]


@pytest.mark.parametrize(
    "page",
    [*sorted(HOME.glob("*.md")), *sorted((HOME / "docs").rglob("*.md"))],
    ids=lambda page: page.name,
)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
