"""Test how durations are counted in buckets, and the maximum that falls again."""

from __future__ import annotations

from coordinator.histogram import WINDOW_MS, Histogram, RecentMax


def test_a_duration_counts_in_the_first_bucket_that_it_fits_into() -> None:
    histogram = Histogram()
    histogram.record_ns(100_000)
    histogram.record_ns(100_001)
    histogram.record_ms(31_000)
    assert histogram.counts == [1, 1, *[0] * 10, 1]
    assert histogram.count == 3
    assert histogram.sum_s == 31.000200001


def test_histograms_add_up() -> None:
    total, other = Histogram(), Histogram()
    total.record_ms(1)
    other.record_ms(2)
    total.add_histogram(other)
    total.add_zeros(2)
    assert total.counts == [2, 0, 1, 1, *[0] * 9]
    assert total.sum_s == 0.003


def test_a_maximum_is_forgotten_after_two_windows() -> None:
    largest = RecentMax()
    largest.record_value(7, 0)
    largest.record_value(3, 1)
    assert largest.value_at(WINDOW_MS - 1) == 7
    largest.record_value(5, WINDOW_MS)
    assert largest.value_at(2 * WINDOW_MS - 1) == 7
    assert largest.value_at(2 * WINDOW_MS) == 5
    assert largest.value_at(3 * WINDOW_MS) == 0
    largest.record_value(1, 9 * WINDOW_MS)
    assert largest.value_at(9 * WINDOW_MS) == 1
