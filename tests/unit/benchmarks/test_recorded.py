"""Test that measurements are kept where BENCH_RECORD says, and nowhere without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.figures import Figures
from benchmarks.recorded import DIRECTORY, record


def kept(directory: Path) -> list[dict[str, object]]:
    files = sorted(directory.glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_a_row_for_each_round_with_what_is_needed_to_compare_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "measured"))
    record("unit", "a case", "ours", "/s", [3, 4])
    record("unit", "a case", "by hand", "/s", [5], baseline=True)
    rows = kept(tmp_path / "measured")
    assert [(r["way"], r["round"], r["value"], r["baseline"]) for r in rows] == [
        ("ours", 0, 3.0, False),
        ("ours", 1, 4.0, False),
        ("by hand", 0, 5.0, True),
    ]
    assert len({row["run"] for row in rows}) == 1
    for fact in ("machine", "cpu", "cores", "python", "commit", "at"):
        assert rows[0][fact] not in (None, ""), fact


def test_figures_of_brokers_are_kept_with_kafka_as_what_we_are_measured_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    figures = Figures()
    figures.add("produce", "/s", "embedded", 2.0)
    figures.add("produce", "/s", "kafka", 1.0)
    figures.record("figures")
    assert [(r["way"], r["baseline"]) for r in kept(tmp_path)] == [
        ("embedded", False),
        ("kafka", True),
    ]


def test_without_a_directory_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DIRECTORY, raising=False)
    monkeypatch.chdir(tmp_path)
    record("unit", "a case", "ours", "/s", [3])
    assert list(tmp_path.iterdir()) == []
