"""Test that docs/commands.md has each command with all of its options, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.commands.root import COMMANDS, load_command

PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
SECTION = re.compile(
    r"^##+ `(millrace [a-z -]+?)(?: [A-Z\[][^`\n]*)?`\n(.*?)(?=^## |^### |\Z)", re.M | re.S
)
ELSEWHERE = ("run", "broker", "doctor", "plan", "acls", "export", "reconcile")
CLUSTER_OPTIONS = {"--bootstrap-servers", "--state-dir", "--config", "--connection"}
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def list_commands() -> Iterator[tuple[str, Any]]:
    """Yield the commands that this page describes, by their whole names."""
    for name in COMMANDS:
        command = load_command(name)
        for subname, each in getattr(command, "commands", {"": command}).items():
            if name not in ELSEWHERE and not each.hidden:
                yield f"millrace {name} {subname}".strip(), each


DESCRIBED = dict(list_commands())
SECTIONS = dict(SECTION.findall(PAGE))


def options_of(command: Any) -> set[str]:
    return {option for each in command.params for option in each.opts if option.startswith("-")}


def missing_options(section: str, command: Any) -> set[str]:
    """Return options of a command that its section does not name, but for those of the cluster."""
    named = set(OPTION.findall(section))
    return options_of(command) - named - CLUSTER_OPTIONS


@pytest.mark.parametrize("name", DESCRIBED)
def test_each_command_has_a_section_with_all_of_its_options(name: str) -> None:
    assert missing_options(SECTIONS[name], DESCRIBED[name]) == set()


@pytest.mark.parametrize("name", DESCRIBED)
def test_no_table_has_an_option_that_the_command_does_not_have(name: str) -> None:
    cells = re.findall(r"^\| (`-.*?`) \|", SECTIONS[name], re.MULTILINE)
    written = {option for cell in cells for option in OPTION.findall(cell)}
    assert written - options_of(DESCRIBED[name]) == set()


def test_an_option_that_is_not_written_is_found() -> None:
    section = SECTIONS["millrace topics list"].replace("`--internal`", "")
    assert missing_options(section, DESCRIBED["millrace topics list"]) == {"--internal"}


def test_each_command_is_named_and_each_that_reaches_a_cluster_says_how() -> None:
    for name in ELSEWHERE:
        assert f"`millrace {name}" in PAGE
    for option in CLUSTER_OPTIONS:
        assert f"| `{option} " in PAGE
