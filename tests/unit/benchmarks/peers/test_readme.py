"""Test that README has the figures that were measured, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.peers.readme import (
    README,
    create_markdown,
    read_measured,
    replace_figures,
)
from benchmarks.peers.workloads import create_workloads

MEASURED: dict[str, Any] = {
    "title": "a title",
    "day": "2026-01-31",
    "kafka": "4.4.0",
    "cores": 2,
    "cpu": "a processor",
    "commit": "abc",
    "figures": [
        {
            "workload": "map",
            "way": way,
            "records_per_s": rate,
            "cpu_s_per_million": cpu_s,
            "peak_mb": 150.4,
        }
        for way, rate, cpu_s in (
            ("loop", 200_000, 2.0),
            ("millrace", 180_000, 3.0),
            ("kafka-streams", 90_000, 12.0),
        )
    ],
}


def test_the_figures_in_readme_are_those_of_the_result_file() -> None:
    text = README.read_text()
    assert replace_figures(text, create_markdown(read_measured())) == text, (
        "python -m benchmarks.peers.readme writes them anew"
    )


def test_the_result_file_has_no_other_workloads_than_are_measured() -> None:
    measured = {each["workload"] for each in read_measured()["figures"]}
    assert measured <= {each.name for each in create_workloads(1_000)}
    assert measured


def test_a_row_has_each_way_and_the_ratios_of_ours() -> None:
    row = "| map | 200 (2.0) | 180 (3.0) | 90 (12.0) | 0.90 | 2.00 | 1.50 | 0.25 | 150 |"
    assert create_markdown(MEASURED).splitlines()[-1] == row


def test_a_way_that_was_not_measured_has_no_column() -> None:
    without_loop = {**MEASURED, "figures": MEASURED["figures"][1:]}
    lines = create_markdown(without_loop).splitlines()
    assert lines[-1] == "| map | 180 (3.0) | 90 (12.0) | 2.00 | 0.25 | 150 |"
    columns = ["Millrace", "Kafka Streams", "rate, to Kafka Streams", "CPU, to Kafka Streams"]
    assert lines[-3] == f"| workload | {' | '.join(columns)} | MB |"


def test_a_figure_that_was_changed_by_hand_is_found() -> None:
    page = replace_figures("a <!-- figures --><!-- /figures --> z", create_markdown(MEASURED))
    assert replace_figures(page, create_markdown(MEASURED)) == page
    changed = page.replace("180 (3.0)", "190 (3.0)")
    assert replace_figures(changed, create_markdown(MEASURED)) != changed
    with pytest.raises(ValueError, match="no <!-- figures -->"):
        replace_figures("a page", "a table")
