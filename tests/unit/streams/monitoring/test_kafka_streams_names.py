"""Compare a worker's figures with all metrics that a running Kafka Streams has.

`python -m tests.peers.metrics` lists those again.
"""

from __future__ import annotations

import pytest

from ops.generate.kafka_streams_gaps import GAPS, Gap, find_gap
from streams.graph.nodes import StoreKind
from streams.monitoring.definitions.catalog import all_definitions
from streams.monitoring.definitions.client import (
    CLIENT_DEFINITION,
    CLIENT_GROUP,
    CLIENT_LABELS,
)
from streams.monitoring.definitions.kafka_names import to_scraped_name
from streams.monitoring.definitions.rocksdb import name_state_label
from tests.kafka.versions import YARDSTICK
from tests.peers.metrics.listed import ListedMetric, read_listed_metrics, read_version

LISTED = read_listed_metrics()
DEFINED = {each.name: each for each in all_definitions()}


def is_defined(metric: ListedMetric) -> bool:
    """Return whether a worker shows a metric under the name that dashboards query."""
    if metric.group == CLIENT_GROUP and metric.name.replace("-", "_") in CLIENT_LABELS:
        return True
    return to_scraped_name(metric.group, metric.name) in DEFINED


def test_the_list_is_of_the_version_that_tests_compare_with() -> None:
    assert read_version() == YARDSTICK


def test_each_metric_of_kafka_streams_is_shown_or_named_with_a_reason() -> None:
    silent = {
        (each.group, each.name)
        for each in LISTED
        if not is_defined(each) and find_gap(each.group, each.name) is None
    }
    assert silent == set()


def test_no_metric_that_is_shown_is_named_as_one_that_is_not() -> None:
    both = {
        (each.group, each.name)
        for each in LISTED
        if is_defined(each) and find_gap(each.group, each.name) is not None
    }
    assert both == set()


def test_no_name_of_kafka_streams_is_invented() -> None:
    listed = {to_scraped_name(each.group, each.name) for each in LISTED}
    ours = {name for name in DEFINED if name.startswith("kafka_")} - {CLIENT_DEFINITION.name}
    assert ours
    assert ours <= listed


def test_a_figure_with_kafkas_name_has_the_labels_that_kafka_streams_gives_it() -> None:
    tags: dict[str, set[frozenset[str]]] = {}
    for each in LISTED:
        labels = frozenset(tag.replace("-", "_") for tag in each.tags)
        tags.setdefault(to_scraped_name(each.group, each.name), set()).add(labels)
    for name, definition in DEFINED.items():
        if name.startswith("kafka_") and definition is not CLIENT_DEFINITION:
            labels = frozenset(definition.labels) - {"client_type"}  # which the exporter adds
            variants = {labels | {each} for each in definition.one_of} or {labels}
            assert variants <= tags[name], name


def test_a_figure_with_kafkas_name_is_recorded_from_the_same_level_on() -> None:
    levels = {to_scraped_name(each.group, each.name): each.level for each in LISTED}
    ours = {name: each.level for name, each in DEFINED.items() if name in levels}
    assert ours == {name: levels[name] for name in ours}
    assert set(ours.values()) == {"info", "debug"}


def test_a_store_is_named_by_the_label_that_kafka_streams_has_for_its_kind() -> None:
    state_labels = {
        tag.replace("-", "_") for each in LISTED for tag in each.tags if tag.endswith("state-id")
    }
    ours = {
        name_state_label(kind, persistent=persistent)
        for kind in StoreKind
        for persistent in (True, False)
    }
    assert ours == state_labels


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: f"{gap.group.pattern} {gap.name.pattern}")
def test_a_gap_is_of_a_metric_that_there_is(gap: Gap) -> None:
    """Each is the reason of a metric, and what it names instead is a figure of a worker."""
    assert any(find_gap(each.group, each.name) is gap for each in LISTED)
    assert gap.instead == "" or gap.instead in DEFINED
