"""Make figures of tasks and of their steps, topics and caches, under Kafka Streams' names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from streams.common.timings import Timing
from streams.graph.step_measurements import StepMeasurements
from streams.monitoring.definitions.kafka_names import to_scraped_name
from streams.monitoring.definitions.tasks import CACHE_GROUP, NODE_GROUP, TASK_GROUP, TOPIC_GROUP
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.measurements import ThreadMeasurements

_MS = 1_000


class Figure(NamedTuple):
    """Represents a figure of a thread: its name, its labels after that of the thread, its value."""

    name: str
    labels: tuple[str, ...]
    value: float


def list_source_figures(
    measured: ThreadMeasurements, source_steps: Mapping[str, str]
) -> Iterator[Figure]:
    """Yield what source steps have got; `source_steps` name the step that reads a topic."""
    totals: dict[tuple[str, str], int] = {}
    latencies: dict[tuple[str, str], list[Timing]] = {}
    for (task, topic), each in measured.sources.copy().items():
        step, records = source_steps.get(topic, ""), each.records
        yield _create_figure(TOPIC_GROUP, "records-consumed-total", (task, step, topic), records)
        yield _create_figure(TOPIC_GROUP, "bytes-consumed-total", (task, step, topic), each.bytes)
        totals[task, step] = totals.get((task, step), 0) + records
        latencies.setdefault((task, step), []).append(each.latency)
    for labels, total in totals.items():
        yield _create_figure(NODE_GROUP, "process-total", labels, total)
    for labels, timings in latencies.items():
        yield from _list_latency_figures(labels, timings)
    for task, timings_of_task in measured.timings_by_task.copy().items():
        steps = {step for owner, step in totals if owner == task}
        if len(steps) == 1:
            rate = timings_of_task.process_records.read_figures().ratio
            yield _create_figure(NODE_GROUP, "process-rate", (task, *steps), rate)


def list_step_figures(tasks: Iterable[Task]) -> Iterator[Figure]:
    """Yield what the other steps of active tasks have done."""
    for task in tasks:
        for step, measured in task.step_measurements.copy().items():
            yield from _list_figures_of_step((task.name, step), measured)


def list_task_figures(tasks: Iterable[Task]) -> Iterator[Figure]:
    """Yield what active tasks hold in buffers and caches, and have restored."""
    for task in tasks:
        labels = (task.name,)
        if (buffered := task.buffer) is not None:
            waiting = buffered.count_records()
            yield _create_figure(TASK_GROUP, "active-buffer-count", labels, waiting)
        restored = [each.restored_records for each in task.stores.logged.copy().values()]
        yield _create_figure(TASK_GROUP, "restore-total", labels, sum(restored))
        caches = task.stores.list_caches()
        size = sum(each.bytes for each in caches.values())
        yield _create_figure(TASK_GROUP, "cache-size-bytes-total", labels, size)
        for store, cache in caches.items():
            if (ratio := cache.hit_ratio) is not None:
                for metric, value in zip(("avg", "min", "max"), ratio, strict=True):
                    of_cache = (task.name, store)
                    yield _create_figure(CACHE_GROUP, f"hit-ratio-{metric}", of_cache, value)


def count_restoring_tasks(tasks: Iterable[Task]) -> int:
    """Count the tasks whose stores are restored at present."""
    return sum(task.state is TaskState.RESTORING for task in tasks)


def _list_figures_of_step(labels: tuple[str, str], measured: StepMeasurements) -> Iterator[Figure]:
    """Yield the figures of one step that is no source; `labels` are its task and its name."""
    if measured.latency.total:
        yield from _list_latency_figures(labels, [measured.latency])
    for topic, written in measured.written.copy().items():
        of_topic = (*labels, topic)
        yield _create_figure(TOPIC_GROUP, "records-produced-total", of_topic, written.records)
        yield _create_figure(TOPIC_GROUP, "bytes-produced-total", of_topic, written.total_bytes)
    if (emits := measured.suppression_emits) is not None:
        rate = emits.read_figures().rate
        yield _create_figure(NODE_GROUP, "suppression-emit-rate", labels, rate)
        yield _create_figure(NODE_GROUP, "suppression-emit-total", labels, measured.emitted_count)
    if measured.final_emits is not None and measured.final_records is not None:
        read, records = measured.final_emits.read_figures(), measured.final_records
        for metric, value in (
            ("latency-avg", read.average * _MS),
            ("latency-max", read.maximum * _MS),
            ("rate", records.read_figures().ratio),
            ("total", records.sum),
        ):
            name = f"window-aggregate-final-emit-{metric}"
            yield _create_figure(NODE_GROUP, name, labels, value)


def _list_latency_figures(labels: tuple[str, str], timings: Iterable[Timing]) -> Iterator[Figure]:
    """Yield the latencies of a step, of several timings together."""
    read = [each.read_figures() for each in timings]
    seen = [each for each in read if each.rate]
    rate = sum(each.rate for each in seen)
    average = sum(each.ratio for each in seen) / rate if rate else 0.0
    for metric, value in (
        ("avg", average),
        ("min", min((each.minimum for each in seen), default=0.0)),
        ("max", max((each.maximum for each in seen), default=0.0)),
    ):
        yield _create_figure(NODE_GROUP, f"record-e2e-latency-{metric}", labels, value * _MS)


def _create_figure(group: str, metric: str, labels: tuple[str, ...], value: float) -> Figure:
    return Figure(to_scraped_name(group, metric), labels, value)
