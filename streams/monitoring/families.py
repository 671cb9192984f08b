"""Build prometheus_client's families of the figures that are defined; there are no others.

prometheus_client is imported when the first family is built, so that a worker without an endpoint
never loads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from streams.monitoring.definitions.catalog import find_definition
from streams.runtime.threads.measurements import LatencyHistogram

if TYPE_CHECKING:
    from prometheus_client.core import Metric


def build_family(name: str, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    """Return the family of a gauge or a counter, with a value for each combination of labels.

    Raises: KeyError for a figure that isn't defined.
    """
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    definition = find_definition(name)
    create = CounterMetricFamily if definition.kind == "counter" else GaugeMetricFamily
    family = create(definition.family_name, definition.help, labels=definition.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def build_store_family(
    name: str, values: Iterable[tuple[tuple[str, str], tuple[str, str], float]]
) -> Metric:
    """Return the family of a gauge of stores.

    Each value comes after thread and task, and after the label that the kind of the store has and
    the store's name. Raises KeyError as `build_family`.
    """
    family = build_family(name, ())
    for (thread, task), (label, store), value in values:
        family.add_sample(name, {"thread_id": thread, "task_id": task, label: store}, value)
    return family


def build_histogram(name: str, histograms: Mapping[str, LatencyHistogram]) -> Metric:
    """Return the family of a histogram by its only label. Raises KeyError as `build_family`."""
    from prometheus_client.core import HistogramMetricFamily

    definition = find_definition(name)
    family = HistogramMetricFamily(name, definition.help, labels=definition.labels)
    for label, histogram in histograms.items():
        family.add_metric([label], histogram.cumulate_counts(), histogram.sum_s)
    return family
