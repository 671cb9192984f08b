"""Tell a worker's figures under the names that dashboards for Kafka Streams query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from streams.monitoring.database_figures import DatabaseFigures
from streams.monitoring.definitions.client import (
    CLIENT_DEFINITION,
    CLIENT_LABELS,
    name_kafka_thread,
)
from streams.monitoring.definitions.kafka_names import to_scraped_name
from streams.monitoring.definitions.kafka_streams import (
    NODE_GROUP,
    TASK_GROUP,
    THREAD_GROUP,
    TIMED_CALLS,
    TOPIC_GROUP,
)
from streams.monitoring.definitions.rocksdb import STATE_GROUP
from streams.monitoring.families import build_family, build_store_family
from streams.monitoring.health import ThreadHealth
from streams.runtime.threads.measurements import ThreadMeasurements
from streams.runtime.threads.timings import TaskTimings, ThreadTimings, Timing

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_MS = 1_000
_Samples: TypeAlias = dict[str, list[tuple[tuple[str, ...], float]]]


@dataclass(frozen=True, slots=True)
class StreamsClient:
    """Describes the worker as a client of Kafka Streams; its id is `<application>-<process id>`."""

    client_id: str
    application_id: str


def describe_client(
    client: StreamsClient, state: str, *, alive: int, failed: int
) -> Iterator[Metric]:
    """Yield the family of the client: state, application, and numbers of its threads."""
    family = build_family(CLIENT_DEFINITION.name, ())
    texts = (state, client.application_id, str(alive), str(failed))
    for label, text, value in zip(CLIENT_LABELS, texts, (1, 1, alive, failed), strict=True):
        family.add_sample(family.name, {"client_id": client.client_id, label: text}, value)
    yield family


def describe_kafka_streams_figures(
    client: StreamsClient,
    measurements: Mapping[str, ThreadMeasurements],
    databases: Iterable[DatabaseFigures],
    source_steps: Mapping[str, str],
) -> Iterator[Metric]:
    """Yield the families of threads, tasks, topics and stores.

    `measurements` are by thread, and `source_steps` name the step that reads a topic.
    """
    samples: _Samples = {}
    for name_here, measured in measurements.items():
        thread = name_kafka_thread(client.client_id, name_here)
        for metric, value in _list_thread_figures(measured).items():
            name = to_scraped_name(THREAD_GROUP, metric)
            samples.setdefault(name, []).append(((thread,), value))
        name = to_scraped_name(TASK_GROUP, "process-total")
        for task, count in list(measured.records_by_task.items()):
            samples.setdefault(name, []).append(((thread, task), count))
        for (task, metric), value in _list_task_figures(measured.timings_by_task.copy()).items():
            name = to_scraped_name(TASK_GROUP, metric)
            samples.setdefault(name, []).append(((thread, task), value))
        name = to_scraped_name(TOPIC_GROUP, "records-consumed-total")
        by_step = Counter[tuple[str, ...]]()
        for (task, topic), count in measured.records_consumed.copy().items():
            step = thread, task, source_steps.get(topic, "")
            samples.setdefault(name, []).append(((*step, topic), count))
            by_step[step] += count
        samples.setdefault(to_scraped_name(NODE_GROUP, "process-total"), []).extend(by_step.items())
    for name, values in samples.items():
        yield build_family(name, values)
    yield from _describe_stores(client, databases)


def describe_restores(client: StreamsClient, threads: Iterable[ThreadHealth]) -> Iterator[Metric]:
    """Yield the family of what the stores of each task have left to restore, together."""
    left = Counter[tuple[str, str]]()
    for each in threads:
        thread = name_kafka_thread(client.client_id, each.name)
        for store in each.restoring:
            left[thread, store.task] += store.records_left
    yield build_family(to_scraped_name(TASK_GROUP, "restore-remaining-records-total"), left.items())


def _describe_stores(
    client: StreamsClient, databases: Iterable[DatabaseFigures]
) -> Iterator[Metric]:
    """Yield the families of RocksDB's properties and statistics."""
    values: dict[str, list[tuple[tuple[str, str], tuple[str, str], float]]] = {}
    for store in databases:
        thread = name_kafka_thread(client.client_id, store.thread)
        labels = (thread, store.task), (store.label, store.store)
        for metric, value in store.values.items():
            values.setdefault(metric, []).append((*labels, value))
    for metric, found in values.items():
        yield build_store_family(to_scraped_name(STATE_GROUP, metric), found)


def _list_thread_figures(measured: ThreadMeasurements) -> dict[str, float]:
    """Return the figures of a thread by Kafka Streams' names."""
    timings = measured.timings
    figures: dict[str, float] = {"thread-start-time": measured.started_at_ms}
    for call in TIMED_CALLS:
        timing = _find_timing(timings, call)
        read = timing.read_figures()
        figures[f"{call}-latency-avg"] = read.average * _MS
        figures[f"{call}-latency-max"] = read.maximum * _MS
        figures[f"{call}-rate"] = read.rate
        figures[f"{call}-total"] = timing.total
        figures[f"{call}-ratio"] = read.ratio
    for sizes, timing in (
        ("poll-records", timings.poll_records),
        ("process-records", timings.process_records),
    ):
        read = timing.read_figures()
        figures[f"{sizes}-avg"], figures[f"{sizes}-max"] = read.average, read.maximum
    # Kafka Streams counts records here, where a slice has many.
    figures["process-rate"] = timings.process_records.read_figures().ratio
    figures["process-total"] = sum(measured.records_by_task.copy().values())
    return figures


def _list_task_figures(timings: Mapping[str, TaskTimings]) -> dict[tuple[str, str], float]:
    """Return the timed figures of a thread's tasks by task and Kafka Streams' name."""
    read = {task: each.process.read_figures() for task, each in timings.items()}
    ratio_of_all = sum(each.ratio for each in read.values())
    figures: dict[tuple[str, str], float] = {}
    for task, timing in timings.items():
        process = read[task]
        figures[task, "process-latency-avg"] = process.average * _MS
        figures[task, "process-latency-max"] = process.maximum * _MS
        figures[task, "process-rate"] = timing.process_records.read_figures().ratio
        figures[task, "active-process-ratio"] = (
            process.ratio / ratio_of_all if ratio_of_all else 0.0
        )
        figures[task, "dropped-records-rate"] = timing.dropped.read_figures().ratio
        figures[task, "dropped-records-total"] = timing.dropped_total
    return figures


def _find_timing(timings: ThreadTimings, call: str) -> Timing:
    """Return the timing of one kind of calls."""
    return {
        "commit": timings.commit,
        "poll": timings.poll,
        "process": timings.process,
        "punctuate": timings.punctuate,
    }[call]
