"""Test that docs/architecture.md names every module and decision, and that links have a target."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]
PAGE = (HOME / "docs" / "architecture.md").read_text()
LAYOUT = PAGE.partition("## Layout")[2].partition("## Who")[0]
TRACES = PAGE.partition("traces\n")[2]
WORDS = set(re.findall(r"\w+", LAYOUT))
PACKAGES = ("coordinator", "state", "streams")
MODULES = {path.relative_to(HOME) for each in PACKAGES for path in (HOME / each).rglob("*.py")}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_is_in_the_layout(package: str) -> None:
    missing = [
        str(path)
        for path in sorted(MODULES)
        if path.parts[0] == package
        and path.parts[:2] != ("coordinator", "api")  # one file an API
        and path.stem != "__init__"
        and path.stem not in WORDS
    ]
    assert missing == []


def test_every_file_of_the_layout_and_of_the_traces_is_there() -> None:
    files = set(re.findall(r"\b(\w+\.py)\b", LAYOUT))
    assert files <= {path.name for path in [*MODULES, *(HOME / "examples").rglob("*.py")]}
    there = {str(path.with_suffix("")) for path in MODULES}
    for step in re.findall(r"\w+(?:/\w+)+", TRACES):
        assert any(f"/{step}/" in f"/{each}/" for each in there), step


def test_the_layers_of_streams_are_those_that_import_linter_checks() -> None:
    settings = tomllib.loads((HOME / "pyproject.toml").read_text())
    (contract,) = (
        each
        for each in settings["tool"]["importlinter"]["contracts"]
        if each["type"] == "layers" and each["containers"] == ["streams"]
    )
    section = PAGE.partition("### The layers of streams")[2].partition("\n#")[0]
    layers = [
        set(re.findall(r"`(\w+)`", layer))
        for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
        for layer in row.split(", then ")
    ]
    assert layers == [set(re.findall(r"\w+", each)) for each in reversed(contract["layers"])]


def test_every_decision_is_named() -> None:
    pages = {f"decisions/{path.name}" for path in (HOME / "docs" / "decisions").glob("*.md")}
    assert pages == set(re.findall(r"\]\((decisions/[^)]+)\)", PAGE))


@pytest.mark.parametrize(
    "page",
    [*sorted(HOME.glob("*.md")), *sorted((HOME / "docs").rglob("*.md"))],
    ids=lambda page: page.name,
)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
