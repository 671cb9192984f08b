"""Test that the page of versions has a table of what `make versions` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.versions import VERSIONS
from tests.versions import test_application as suite
from tests.versions.table import BEGIN, END, Found, create_table, read_table, write_table

PAGE = Path(__file__).parents[3] / "docs" / "versions.md"


def list_features() -> set[str]:
    """Return the rows that the suite has: one for each test that is marked as a feature."""
    marks = (mark for test in vars(suite).values() for mark in getattr(test, "pytestmark", ()))
    return {mark.args[0] for mark in marks if mark.name == "feature"}


def test_the_page_has_each_feature_on_each_version() -> None:
    versions, rows = read_table(PAGE.read_text())
    assert versions == list(VERSIONS)
    assert rows.keys() == list_features()
    for feature, cells in rows.items():
        assert len(cells) == len(VERSIONS), feature
        assert not {"failed", ""} & set(cells), feature


def test_a_table_that_was_written_is_read_back(tmp_path: Path) -> None:
    page = tmp_path / "versions.md"
    page.write_text(f"# Versions\n\n{BEGIN}\n{END}\n\nMore\n")
    found = {("joins", each): Found("yes") for each in VERSIONS[1:]}
    write_table(page, found)
    assert create_table(found) in page.read_text()
    assert page.read_text().endswith(f"{END}\n\nMore\n")
    assert read_table(page.read_text()) == (
        list(VERSIONS),
        {"joins": ["not run", *["yes"] * (len(VERSIONS) - 1)]},
    )


def test_a_run_of_one_version_replaces_its_column_alone(tmp_path: Path) -> None:
    page = tmp_path / "versions.md"
    page.write_text(f"{BEGIN}\n{create_table({('joins', VERSIONS[0]): Found('yes')})}\n{END}\n")
    write_table(page, {("joins", VERSIONS[1]): Found("refused")})
    _, rows = read_table(page.read_text())
    assert rows["joins"][:2] == ["yes", "refused"]


def test_a_page_without_the_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="the page has no <!-- measured -->"):
        read_table("a page")
