"""Test that a worker whose clock is off is found, by its commits and by /health."""

from __future__ import annotations

import pytest

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor.findings import Verdict
from streams.doctor.worker_clocks import check_clocks, find_commits_ahead
from streams.runtime.offsets.offset_metadata import encode_metadata

NOW_MS, DAY_MS = 1_795_956_252_682, 86_400_000
LINE = Partition("lines", 0)


@pytest.mark.parametrize(
    ("number", "ahead_s"),
    [(NOW_MS + DAY_MS, 86_400), (NOW_MS + 29_000, None), (NOW_MS - DAY_MS, None), (None, None)],
)
def test_the_number_of_a_commit_is_the_clock_of_its_worker(
    number: int | None, ahead_s: float | None
) -> None:
    held = OffsetAndMetadata(5, encode_metadata({}, commit_number=number))
    found = find_commits_ahead({LINE: held}, NOW_MS)
    assert found == ({} if ahead_s is None else {LINE: ahead_s})


def test_clocks_that_are_right() -> None:
    (found,) = check_clocks({}, {"127.0.0.1:9": -0.9})
    assert found.verdict is Verdict.FINE


def test_a_clock_ahead_is_named_by_commits() -> None:
    (found,) = check_clocks({LINE: 172_800.0}, {"127.0.0.1:9": 0.1})
    assert (found.verdict, "2 days ahead" in found.what) == (Verdict.WARNING, True)
    assert "lines[0]" in found.what


@pytest.mark.parametrize(("seconds", "words"), [(90_000, "25 h ahead of"), (-40, "40 s behind")])
def test_a_clock_that_is_off_is_named_by_its_worker(seconds: float, words: str) -> None:
    (found,) = check_clocks({LINE: 90_000.0}, {"127.0.0.1:9": seconds})
    assert found.verdict is Verdict.WARNING
    assert f"the worker at 127.0.0.1:9 is {words}" in found.what
