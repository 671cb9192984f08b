"""Test that each package says what it holds, where to start reading, and what it never does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]
PACKAGE_NAMES = ("coordinator", "millrace", "state", "streams")
FILES = sorted(p for name in PACKAGE_NAMES for p in HOME.glob(f"{name}/**"))
PACKAGES = [path for path in FILES if (path / "__init__.py").is_file()]
LINES_MIN = 3


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(HOME)))
def test_a_package_says_more_than_a_sentence_and_where_to_start_reading(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    assert len(text.splitlines()) >= LINES_MIN
    start = re.search(r"Start reading at (.*?)\. ", text.replace("\n", " ") + " ")
    assert start is not None, "it says where to start reading"
    for name in re.findall(r"`(\w+)`", start[1]):
        assert (package / f"{name}.py").is_file() or (package / name).is_dir(), name
