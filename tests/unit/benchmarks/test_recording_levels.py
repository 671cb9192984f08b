"""Test that the level `off` of a benchmark binds sinks which count nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from benchmarks.recording_levels import bind_at, run_at
from streams.runtime.threads.measurements import ThreadMeasurements
from streams.topology import compile as compiling


def _find_bound_writer() -> Callable[..., Any]:
    """Return the function that binds sinks now."""
    bound: Callable[..., Any] = vars(compiling)["create_topic_writer"]
    return bound


def test_a_sink_without_metrics_is_bound_in_the_block_only() -> None:
    real = _find_bound_writer()
    with bind_at("off"):
        bound = _find_bound_writer()
    assert bound is not real
    assert _find_bound_writer() is real
    functions = bound.__globals__
    for writer in (
        "_create_fixed_writer",
        "_create_dynamic_writer",
        "_create_multi_partition_writer",
    ):
        names = {
            name
            for code in functions[writer].__code__.co_consts
            if inspect.iscode(code)
            for name in code.co_names + code.co_freevars
        }
        assert "produce" in names
        assert "measure_written" not in names


def test_a_level_of_the_product_binds_the_sinks_of_the_product() -> None:
    real = _find_bound_writer()
    with bind_at("info"):
        assert _find_bound_writer() is real


def test_threads_measure_nothing_in_the_block_only() -> None:
    real = dict(vars(ThreadMeasurements))
    with run_at("off"):
        replaced = {
            name for name, each in vars(ThreadMeasurements).items() if each is not real[name]
        }
        assert len(replaced) == 3
    assert dict(vars(ThreadMeasurements)) == real
