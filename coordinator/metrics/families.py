"""Build prometheus_client's families from samples, of defined figures only.

Only the endpoint imports this module, so that a broker without one never loads prometheus_client.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.utils import floatToGoString

from coordinator.histogram import BUCKET_BOUNDS_S, Histogram
from coordinator.metrics.definition import MetricDefinition
from coordinator.metrics.definitions import find_definition

_BUCKET_NAMES = [*map(floatToGoString, BUCKET_BOUNDS_S), "+Inf"]
_Family: TypeAlias = (
    CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | SummaryMetricFamily
)
_FAMILY_TYPES: dict[str, type[_Family]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
    "summary": SummaryMetricFamily,
}


class FamilyCollection:
    """Collects the samples of one scrape by the names of their figures.

    Each method raises KeyError for a figure that isn't defined, and ValueError for one of another
    kind or with other labels.
    """

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}

    def add_value(self, name: str, value: float, *labels: str) -> None:
        """Add a sample of a gauge or a counter, with its labels in the order of the definition."""
        family = self._get_or_add_family(name, labels)
        if not isinstance(family, (GaugeMetricFamily, CounterMetricFamily)):
            raise ValueError(f"{name} takes no single value")
        family.add_metric(labels, value)

    def add_summary(self, name: str, count: int, sum_value: float, *labels: str) -> None:
        """Add count and sum of a summary."""
        family = self._get_or_add_family(name, labels)
        if not isinstance(family, SummaryMetricFamily):
            raise ValueError(f"{name} is no summary")
        family.add_metric(labels, count, sum_value)

    def add_histogram(self, name: str, histogram: Histogram, *labels: str) -> None:
        """Add the buckets of a histogram of durations."""
        family = self._get_or_add_family(name, labels)
        if not isinstance(family, HistogramMetricFamily):
            raise ValueError(f"{name} is no histogram")
        buckets, total = [], 0
        for bucket_name, count in zip(_BUCKET_NAMES, tuple(histogram.counts), strict=True):
            total += count
            buckets.append((bucket_name, total))
        family.add_metric(labels, buckets, histogram.sum_s)

    def list_families(self) -> Iterable[Metric]:
        """Return the families that have samples."""
        return self._families.values()

    def _get_or_add_family(self, name: str, labels: tuple[str, ...]) -> _Family:
        """Return the family of a figure, which is created with its first sample."""
        definition = find_definition(name)
        if len(labels) != len(definition.labels):
            raise ValueError(f"{name} has the labels {definition.labels}, not {labels}")
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = _create_family(definition)
        return family


def _create_family(definition: MetricDefinition) -> _Family:
    create = _FAMILY_TYPES[definition.kind]
    return create(definition.family_name, definition.help, labels=definition.labels)
