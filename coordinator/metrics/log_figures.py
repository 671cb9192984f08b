"""Collect the figures of topics, their logs and the cleaner.

Of a topic with more than PARTITIONS_MAX partitions there is one sample for all of them, so that a
scrape stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.api.context import BrokerServices
from coordinator.histogram import Histogram
from coordinator.log.cleaner.counters import CleanerCounters
from coordinator.log.flush_times import FlushTimes
from coordinator.log.partition import PartitionLog
from coordinator.log.topics import BrokerTopic, TopicRegistry
from coordinator.metrics.families import FamilyCollection

PARTITIONS_MAX = 32
ALL_PARTITIONS = "all"


def add_topic_figures(families: FamilyCollection, topics: TopicRegistry) -> None:
    """Add each topic's bytes and records in and out, and the number of topics."""
    add = families.add_value
    found = _list_topics(topics)
    for topic in found:
        logs = topic.partitions
        if not any(each.end_offset for each in logs):
            continue
        name = topic.name
        add("millrace_topic_bytes_in_total", sum(each.figures.bytes_in for each in logs), name)
        records_in = sum(each.end_offset - each.figures.first_new_offset for each in logs)
        add("millrace_topic_records_in_total", records_in, name)
        add("millrace_topic_bytes_out_total", sum(each.figures.bytes_out for each in logs), name)
        records_out = sum(each.figures.records_out for each in logs)
        add("millrace_topic_records_out_total", records_out, name)
    partitions = [log for topic in found for log in topic.partitions]
    add("millrace_topics", len(found))
    add("millrace_partitions", len(partitions))
    add("millrace_partitions_offline", sum(log.damage is not None for log in partitions))


def add_log_figures(
    families: FamilyCollection,
    services: BrokerServices,
    flush_times: FlushTimes,
    cleaner: CleanerCounters,
) -> None:
    """Add the figures of logs and of what is done to them."""
    add = families.add_value
    all_flush_times = Histogram()
    all_flush_times.add_histogram(flush_times.blocking)
    all_flush_times.add_histogram(flush_times.background)
    families.add_histogram("millrace_log_flush_seconds", all_flush_times)
    found, now_ms = _list_topics(services.topics), services.clock.now_ms()
    for topic in found:
        written = [log for log in topic.partitions if log.end_offset]
        _add_figure_by_partition(
            families, "millrace_log_bytes", topic, written, lambda log: log.figures.size, sum
        )
        _add_figure_by_partition(
            families,
            "millrace_log_segments",
            topic,
            written,
            lambda log: log.figures.segment_count,
            sum,
        )
        _add_open_transactions(families, topic, now_ms)
    partitions = [log for topic in found for log in topic.partitions]
    expired_count = sum(log.figures.expired_count for log in partitions)
    add("millrace_log_segments_expired_total", expired_count)
    add("millrace_producer_ids", sum(len(log.producers) for log in partitions))
    add("millrace_cleaner_runs_total", cleaner.cleaned, "cleaned")
    add("millrace_cleaner_runs_total", cleaner.failed, "failed")
    add("millrace_cleaner_seconds_total", cleaner.busy_ns / 1_000_000_000)
    add("millrace_cleaner_bytes_removed_total", cleaner.bytes_removed)
    add("millrace_cleaner_dirty_ratio_max", cleaner.dirty_ratio_max)
    add("millrace_cleaner_partitions_uncleanable", cleaner.uncleanable)


def _list_topics(topics: TopicRegistry) -> list[BrokerTopic]:
    """Return the topics, internal ones included."""
    return list(topics)


def _add_open_transactions(families: FamilyCollection, topic: BrokerTopic, now_ms: int) -> None:
    """Add lag and age for the partitions with an open transaction."""
    ages_s: dict[PartitionLog, float] = {}
    for log in topic.partitions:
        oldest_ms = log.producers.oldest_open_transaction_at_ms()
        if oldest_ms is not None:
            ages_s[log] = max(0, now_ms - oldest_ms) / 1_000
    _add_figure_by_partition(
        families,
        "millrace_log_stable_offset_lag",
        topic,
        ages_s,
        lambda log: log.end_offset - log.last_stable_offset,
        max,
    )
    _add_figure_by_partition(
        families,
        "millrace_log_open_transaction_seconds",
        topic,
        ages_s,
        lambda log: ages_s[log],
        max,
    )


def _add_figure_by_partition(
    families: FamilyCollection,
    name: str,
    topic: BrokerTopic,
    logs: Iterable[PartitionLog],
    measure: Callable[[PartitionLog], float],
    combine: Callable[[list[float]], float],
) -> None:
    """Add a figure for each of these logs of a topic, or one for all if the topic has many."""
    values = {log.index: measure(log) for log in logs}
    if values and len(topic.partitions) > PARTITIONS_MAX:
        families.add_value(name, combine(list(values.values())), topic.name, ALL_PARTITIONS)
        return
    for index, value in values.items():
        families.add_value(name, value, topic.name, str(index))
