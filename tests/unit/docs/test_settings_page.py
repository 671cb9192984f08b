"""Test that docs/settings.md has every setting with its default, and no page contradicts it."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

import pytest

from streams.settings.config import StreamsConfig

DOCS = Path(__file__).parents[3] / "docs"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+?) \|", re.MULTILINE)
DEFAULTS = {name: field.default for name, field in StreamsConfig.model_fields.items()}


def written(default: object) -> str:
    """Return a default value as the pages write it."""
    match default:
        case None:
            return "none"
        case bool() as truth:
            return str(truth)
        case int() as number:
            return f"{number:,}".replace(",", " ")
        case Enum() as member:
            return f"`{member.value}`"
        case _:
            return f"`{default}`"


def test_every_setting_is_in_the_table() -> None:
    rows = ROW.findall((DOCS / "settings.md").read_text())
    assert sorted(name for name, _ in rows) == sorted(DEFAULTS)


@pytest.mark.parametrize("page", ["settings.md", "operations.md"])
def test_a_table_of_settings_has_their_true_defaults(page: str) -> None:
    rows = dict(ROW.findall((DOCS / page).read_text()))
    found = {name: default for name, default in rows.items() if name in DEFAULTS}
    assert found
    assert found == {name: written(DEFAULTS[name]) for name in found}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_a_number_that_a_page_gives_with_a_setting_is_its_default(page: Path) -> None:
    for name, number in re.findall(r"`(\w+)` \((?:default )?(\d[\d ]*)\)", page.read_text()):
        assert number == written(DEFAULTS[name]), name
