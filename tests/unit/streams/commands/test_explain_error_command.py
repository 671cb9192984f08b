"""Test that `millrace explain-error` prints the section of a code, and of a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from streams.symptoms.lookup import find_by_code
from streams.symptoms.pages import find_pages, require_section
from streams.symptoms.table import SYMPTOMS

PAGES = Path(__file__).parents[4] / "docs" / "troubleshooting"


def explain(*words: str) -> Result:
    return CliRunner().invoke(cli, ["explain-error", *words])


@pytest.mark.parametrize("code", [each.code for each in SYMPTOMS])
def test_it_prints_the_section_of_a_code_as_it_is_where_piped(code: str) -> None:
    result = explain(code)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"## {code}: ")
    assert result.stdout.count("\n## ") == 0
    assert result.stdout in "".join(page.read_text() for page in PAGES.glob("*.md"))


def test_it_finds_the_code_of_a_message() -> None:
    line = "WARNING streams: thread 0 starts over: poll: fenced (_FENCED)"
    assert explain(line).stdout.startswith("## MR-010: ")
    assert explain(*line.split()).stdout.startswith("## MR-010: ")


def test_an_unknown_code_says_the_nearest() -> None:
    result = explain("MR-017")
    assert result.exit_code == 2
    assert result.stderr.startswith("millrace: there is no code MR-017; the nearest is MR-016")


def test_a_message_of_no_symptom_is_refused_in_one_line() -> None:
    result = explain("nothing", "of", "ours")
    assert result.exit_code == 2
    message, _, command = result.stderr.partition(" `")
    assert message.startswith("millrace: no symptom has this message: 'nothing of ours'. ")
    assert message.endswith(" (MR-001 to MR-003);")
    assert command.endswith("millrace explain-error` lists all\n")  # by its path if need be
    assert result.stderr.count("\n") == 1


def test_without_a_code_it_lists_all() -> None:
    listed = explain().stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == sorted(each.code for each in SYMPTOMS)


def test_an_installed_package_has_the_pages_beside_it(tmp_path: Path) -> None:
    package = tmp_path / "streams" / "symptoms"
    package.mkdir(parents=True)
    assert find_pages(package) == tmp_path / "docs" / "troubleshooting"
    (package / "troubleshooting").mkdir()
    assert find_pages(package) == package / "troubleshooting"


def test_a_section_ends_where_that_of_another_code_begins(tmp_path: Path) -> None:
    symptom = find_by_code("MR-020")
    assert symptom is not None
    (tmp_path / symptom.page).write_text("# Page\n\n## MR-020: Here\n\nIt is.\n\n## MR-021: Next\n")
    assert require_section(symptom, tmp_path) == "## MR-020: Here\n\nIt is.\n"
    (tmp_path / symptom.page).write_text("# Page\n\n## MR-021: Next\n")
    with pytest.raises(LookupError, match="MR-020"):
        require_section(symptom, tmp_path)


@pytest.mark.parametrize(
    "message",
    [
        "WARNING streams.runtime.tasks.failures: step 'a' failed: skipped (see MR-070)",
        "something that no table knows (see MR-070)",
    ],
)
def test_a_message_that_has_a_code_is_explained_by_it(message: str) -> None:
    result = CliRunner().invoke(cli, ["explain-error", *message.split()])
    assert result.exit_code == 0, result.output
    assert "MR-070" in result.output
