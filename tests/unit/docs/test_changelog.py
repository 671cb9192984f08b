"""Test that the changes in changelog.d/ are well-formed, and that a release gathers all of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]
DIRECTORY = HOME / "changelog.d"
NAME = re.compile(r"\+[a-z0-9]+(?:-[a-z0-9]+)*\.(?:added|changed|fixed|removed)\.md")


def explain_fault(name: str, text: str) -> str | None:
    """Return what is wrong with a file of changelog.d/, or None."""
    if not NAME.fullmatch(name):
        return "name it +WHAT.KIND.md, of kind added, changed, fixed or removed"
    if not text.strip() or "\n\n" in text.strip():
        return "write one paragraph"
    if text[0] in "#-* " or not text.endswith(".\n"):
        return "write whole sentences, without a bullet, and end the line"
    links = re.findall(r"\]\((?!http)([^)#\s]+)", text)
    if dead := [link for link in links if not (HOME / link).exists()]:
        return f"links start at the root: {', '.join(dead)}"
    return None


def test_each_change_is_a_file_of_one_paragraph() -> None:
    files = [path for path in DIRECTORY.iterdir() if path.name != "README.md"]
    faults = {path.name: explain_fault(path.name, path.read_text()) for path in files}
    assert {name: fault for name, fault in faults.items() if fault} == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("+a-store.mended.md", "A store is read again.\n"),
        ("a-store.fixed.md", "A store is read again.\n"),
        ("+a-store.fixed.md", ""),
        ("+a-store.fixed.md", "One.\n\nTwo.\n"),
        ("+a-store.fixed.md", "- A store is read again.\n"),
        ("+a-store.fixed.md", "A store is read again"),
        ("+a-store.fixed.md", "A store ([state](state.md)) is read again.\n"),
    ],
)
def test_a_malformed_change_is_found(name: str, text: str) -> None:
    assert explain_fault(name, text)
    assert not explain_fault("+a-store.fixed.md", "A store ([state](docs/state.md)) is read.\n")


def test_a_release_puts_the_changes_above_those_of_the_version_before(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (tmp_path / name).write_text((HOME / name).read_text())
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "+a-store.fixed.md").write_text("A store is read again.\n")
    command = ["build", "--version", "0.1.0", "--date", "2027-01-31", "--keep"]
    subprocess.run(
        [sys.executable, "-m", "towncrier", *command],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    text = (tmp_path / "CHANGELOG.md").read_text()
    section = "## 0.1.0, 2027-01-31\n\n### Fixed\n\n- A store is read again.\n"
    assert text.index("<!-- towncrier") < text.index(section) < text.index("## Before 0.1.0")
