"""Test that the examples of docs/faults.md do what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.fault_file import read_faults
from tests.unit.docs.page_examples import read_blocks


@pytest.mark.parametrize("example", read_blocks("faults.md"))
def test_an_example_runs(example: str) -> None:
    exec(compile(example, "faults.md", "exec"), {})


def test_the_file_can_be_read(tmp_path: Path) -> None:
    [example] = read_blocks("faults.md", "toml")
    file = tmp_path / "faults.toml"
    file.write_text(example)
    assert [fault.action for fault in read_faults(file)] == [
        "lose-answer",
        "delay",
        "fail-append",
        "full",
    ]
