"""Test what is said of inputs without an offset whose tasks have no state."""

from __future__ import annotations

import pytest

from streams.common.topic_partitions import Partition
from streams.doctor.findings import Verdict
from streams.doctor.symptom_codes import add_code
from streams.doctor.uncommitted_inputs import describe_uncommitted_inputs, list_inputs

SPANS = {Partition("lines", 1): 7, Partition("lines", 0): 5, Partition("words", 0): 1}


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("earliest", "reads all 12 offsets that are there"),
        ("latest", "leaves out all 12 offsets that are there"),
        ("none", "is refused"),
        ("by_duration:PT1H", "begins as this policy says"),
    ],
)
def test_what_the_next_start_does_is_said_by_the_policy(policy: str, said: str) -> None:
    lines, words = (add_code(e) for e in describe_uncommitted_inputs(list_inputs(SPANS), policy))
    assert (lines.verdict, lines.code) == (Verdict.WARNING, "MR-025")
    assert "input 'lines' in 2 partitions" in lines.what
    assert said in lines.consequence
    assert f"auto_offset_reset={policy}" in lines.consequence
    assert "group reset" in lines.remedy
    assert "'words' in 1 partition" in words.what


def test_without_such_inputs_nothing_is_said() -> None:
    assert list(describe_uncommitted_inputs(list_inputs({}), "earliest")) == []
