"""Test the rules that the definitions of the broker's figures keep."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from coordinator.histogram import Histogram
from coordinator.metrics.definition import MetricDefinition
from coordinator.metrics.definitions import all_definitions, find_definition
from coordinator.metrics.families import FamilyCollection

each_definition = pytest.mark.parametrize("each", all_definitions(), ids=lambda each: each.name)


def test_no_name_is_defined_twice() -> None:
    names = Counter(each.family_name for each in all_definitions())
    assert [name for name, count in names.items() if count > 1] == []


@each_definition
def test_a_name_follows_the_rules_of_prometheus(each: MetricDefinition) -> None:
    assert re.fullmatch(r"millrace(_[a-z]+)+", each.name)
    assert each.name.endswith("_total") == (each.kind == "counter")
    if each.kind in ("histogram", "summary"):
        assert each.unit == "seconds"
    if each.unit in ("seconds", "bytes"):
        assert f"_{each.unit}" in each.name or "_bytes_" in each.name


@each_definition
def test_a_figure_is_described_in_sentences(each: MetricDefinition) -> None:
    assert each.help[0].isupper()
    assert each.help.endswith(".")
    assert each.group
    assert each.level == "info"


def test_a_figure_that_is_not_defined_can_not_be_emitted() -> None:
    with pytest.raises(KeyError, match="millrace_guesses"):
        FamilyCollection().add_value("millrace_guesses", 1)


def test_a_figure_is_emitted_with_the_labels_and_the_kind_of_its_definition() -> None:
    families = FamilyCollection()
    with pytest.raises(ValueError, match="has the labels"):
        families.add_value("millrace_shard_active", 1)
    with pytest.raises(ValueError, match="no single value"):
        families.add_value("millrace_log_flush_seconds", 1)
    with pytest.raises(ValueError, match="no histogram"):
        families.add_histogram("millrace_shard_active", Histogram(), "a")
    with pytest.raises(ValueError, match="no summary"):
        families.add_summary("millrace_log_flush_seconds", 1, 1.0)


def test_a_histogram_is_emitted_with_buckets_that_add_up() -> None:
    histogram = Histogram()
    for duration_ms in (1, 20, 20, 40_000):
        histogram.record_ms(duration_ms)
    families = FamilyCollection()
    families.add_histogram("millrace_log_flush_seconds", histogram)
    [family] = families.list_families()
    assert family.documentation == find_definition("millrace_log_flush_seconds").help
    found = {sample.labels.get("le", sample.name): sample.value for sample in family.samples}
    assert (found["0.0003"], found["0.001"], found["0.01"], found["0.03"]) == (0, 1, 1, 3)
    assert (found["30.0"], found["+Inf"]) == (3, 4)
    assert found["millrace_log_flush_seconds_count"] == 4
    assert found["millrace_log_flush_seconds_sum"] == pytest.approx(40.041)
