"""Test that the examples of docs/faults.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coordinator.fault_file import read_faults

PAGE = Path(__file__).parents[3] / "docs" / "faults.md"


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", examples("python"))
def test_an_example_runs(example: str) -> None:
    exec(compile(example, str(PAGE), "exec"), {})


def test_the_file_can_be_read(tmp_path: Path) -> None:
    [example] = examples("toml")
    file = tmp_path / "faults.toml"
    file.write_text(example)
    assert [fault.action for fault in read_faults(file)] == [
        "lose-answer",
        "delay",
        "fail-append",
        "full",
    ]
