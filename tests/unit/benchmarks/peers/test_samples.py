"""Test what is computed from the samples of a run."""

from __future__ import annotations

import pytest

from benchmarks.peers.samples import Sample, VoidRun, compute_figures, has_settled

# A start of ten seconds, a slow first quarter, then a steady rate, and two seconds of rest.
SAMPLES = [
    Sample(0.0, 0, 0.0),
    Sample(10.0, 100, 9.0),
    Sample(15.0, 250, 12.0),
    Sample(16.0, 500, 13.0),
    Sample(17.0, 750, 14.0),
    Sample(18.0, 1_000, 15.0),
    Sample(19.0, 1_000, 15.5),
    Sample(20.0, 1_000, 16.0),
]


def test_start_first_quarter_and_rest_do_not_count() -> None:
    figures = compute_figures(SAMPLES, 4_000_000, 123.0)
    assert figures.records_per_s == pytest.approx(1_000_000)
    assert figures.cpu_s_per_million == pytest.approx(1.0)
    assert figures.peak_mb == 123.0


def test_with_an_internal_topic_all_counts_from_the_first_commit_of_input_on() -> None:
    consumed = [Sample(9.0, 0, 8.0, 1_000_000), *SAMPLES[1:]]
    figures = compute_figures(consumed, 4_000_000, 123.0, by_input=True)
    assert figures.records_per_s == pytest.approx(4_000_000 / 9)
    assert figures.cpu_s_per_million == pytest.approx(7.0 / 4)


def test_a_run_of_few_commits_is_void() -> None:
    with pytest.raises(VoidRun, match="2 commits are too few"):
        compute_figures([Sample(0.0, 0, 0.0), *SAMPLES[-4:]], 4_000_000, 123.0)


@pytest.mark.parametrize(
    ("count", "at_least", "settled"),
    [(8, 900, True), (7, 900, False), (8, 1_001, False), (1, 1, False)],
)
def test_a_run_ends_when_enough_output_has_been_there_for_a_time(
    count: int, at_least: int, settled: bool
) -> None:
    assert has_settled(SAMPLES[:count], at_least, 2.0) is settled


def test_a_run_goes_on_while_input_is_left_however_long_no_output_comes() -> None:
    consuming = [each._replace(consumed=400_000) for each in SAMPLES]
    assert has_settled(consuming, 1_000, 2.0)
    assert not has_settled(consuming, 1_000, 2.0, consumed=500_000)
    consuming[-1] = consuming[-1]._replace(consumed=500_000)
    assert has_settled(consuming, 1_000, 2.0, consumed=500_000)
