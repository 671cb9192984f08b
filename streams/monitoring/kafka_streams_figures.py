"""Tell a worker's figures under the names that dashboards for Kafka Streams query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from streams.common.timings import Timing
from streams.monitoring.database_figures import DatabaseFigures
from streams.monitoring.definitions.client import (
    CLIENT_DEFINITION,
    CLIENT_GROUP,
    CLIENT_LABELS,
    name_kafka_thread,
)
from streams.monitoring.definitions.kafka_names import to_scraped_name
from streams.monitoring.definitions.kafka_streams import (
    THREAD_GROUP,
    TIMED_CALLS,
    UPDATER_GROUP,
)
from streams.monitoring.definitions.rocksdb import STATE_GROUP
from streams.monitoring.definitions.tasks import TASK_GROUP
from streams.monitoring.families import build_family, build_store_family
from streams.monitoring.health import ThreadHealth
from streams.monitoring.step_figures import (
    count_restoring_tasks,
    list_source_figures,
    list_step_figures,
    list_task_figures,
)
from streams.runtime.restoring.restorer_timings import RestorerTimings
from streams.runtime.tasks.task import Task
from streams.runtime.threads.measurements import ThreadMeasurements
from streams.runtime.threads.timings import TaskTimings, ThreadTimings
from streams.version import VERSION

if TYPE_CHECKING:
    from prometheus_client.core import Metric

TaskName: TypeAlias = str
FigureName: TypeAlias = str

_MS, _NS = 1_000, 1_000_000_000
KAFKA_CLIENT_STATES = {
    "CREATED": 0,
    "REBALANCING": 1,
    "RUNNING": 2,
    "PENDING_SHUTDOWN": 3,
    "NOT_RUNNING": 4,
    "PENDING_ERROR": 5,
    "ERROR": 6,
}
"""The numbers of KafkaStreams.State."""
KAFKA_THREAD_STATES = {"CREATED": 0, "REBALANCING": 3, "RUNNING": 4, "ENDED": 6}
"""The numbers of StreamThread.State."""
_Samples: TypeAlias = dict[str, list[tuple[tuple[str, ...], float]]]


@dataclass(frozen=True, slots=True)
class StreamsClient:
    """Describes the worker as a client of Kafka Streams; its id is `<application>-<process id>`."""

    client_id: str
    application_id: str
    process_id: str = ""
    recording_level: int = 0
    """The number that Kafka Streams has for it: 0 is `info`."""


def describe_client(
    client: StreamsClient, state: str, *, alive: int, failed: int
) -> Iterator[Metric]:
    """Yield the families of the client: its state, application, version and threads."""
    family = build_family(CLIENT_DEFINITION.name, ())
    texts = (state, client.application_id, VERSION, str(alive), str(failed))
    for label, text, value in zip(CLIENT_LABELS, texts, (1, 1, 1, alive, failed), strict=True):
        family.add_sample(family.name, {"client_id": client.client_id, label: text}, value)
    yield family
    labels = client.application_id, client.client_id, client.process_id
    number = KAFKA_CLIENT_STATES[state]
    yield build_family(to_scraped_name(CLIENT_GROUP, "client-state"), [(labels, number)])
    level = client.recording_level
    yield build_family(to_scraped_name(CLIENT_GROUP, "recording-level"), [(labels[1:], level)])


def describe_kafka_streams_figures(
    client: StreamsClient,
    measurements: Mapping[str, ThreadMeasurements],
    databases: Iterable[DatabaseFigures],
    source_steps: Mapping[str, str],
    tasks: Mapping[str, list[Task]],
) -> Iterator[Metric]:
    """Yield the families of threads, tasks, steps, topics and stores.

    `measurements` and active `tasks` are by thread; `source_steps` name the step that reads a
    topic.
    """
    samples: _Samples = {}

    def add_sample(group: str, metric: str, labels: tuple[str, ...], value: float) -> None:
        samples.setdefault(to_scraped_name(group, metric), []).append((labels, value))

    for name_here, measured in measurements.items():
        thread = name_kafka_thread(client.client_id, name_here)
        for metric, value in _list_thread_figures(measured).items():
            add_sample(THREAD_GROUP, metric, (thread,), value)
        for metric, value in _list_updater_figures(measured.restorer).items():
            add_sample(UPDATER_GROUP, metric, (thread,), value)
        for task, count in list(measured.records_by_task.items()):
            add_sample(TASK_GROUP, "process-total", (thread, task), count)
        for (task, metric), value in _list_task_figures(measured.timings_by_task.copy()).items():
            add_sample(TASK_GROUP, metric, (thread, task), value)
        own = tasks.get(name_here, [])
        add_sample(UPDATER_GROUP, "active-restoring-tasks", (thread,), count_restoring_tasks(own))
        for figure in chain(
            list_source_figures(measured, source_steps),
            list_step_figures(own),
            list_task_figures(own),
        ):
            samples.setdefault(figure.name, []).append(((thread, *figure.labels), figure.value))
    for name, values in samples.items():
        yield build_family(name, values)
    yield from _describe_stores(client, databases)


def describe_thread_states(
    client: StreamsClient, threads: Sequence[ThreadHealth]
) -> Iterator[Metric]:
    """Yield the families of the states of threads, and of the standby tasks that each follows."""
    names = [name_kafka_thread(client.client_id, each.name) for each in threads]
    yield build_family(
        to_scraped_name(THREAD_GROUP, "thread-state"),
        [
            ((name, client.process_id), KAFKA_THREAD_STATES[each.state])
            for name, each in zip(names, threads, strict=True)
        ],
    )
    yield build_family(
        to_scraped_name(UPDATER_GROUP, "standby-updating-tasks"),
        [
            ((name,), sum(state == "STANDBY" for state in each.tasks.values()))
            for name, each in zip(names, threads, strict=True)
        ],
    )


def describe_restores(client: StreamsClient, threads: Iterable[ThreadHealth]) -> Iterator[Metric]:
    """Yield the families of what stores of each task have left to restore, and how fast it goes."""
    left = Counter[tuple[str, str]]()
    rates: dict[tuple[str, str], float] = {}
    for each in threads:
        thread = name_kafka_thread(client.client_id, each.name)
        for store in each.restoring:
            left[thread, store.task] += store.records_left
            rates[thread, store.task] = rates.get((thread, store.task), 0.0) + store.records_per_s
    yield build_family(to_scraped_name(TASK_GROUP, "restore-remaining-records-total"), left.items())
    yield build_family(to_scraped_name(TASK_GROUP, "restore-rate"), rates.items())


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
    figures["blocked-time-ns-total"] = timings.blocked_s * _NS
    for done, timing in (
        ("created", measured.lifetimes.created),
        ("closed", measured.lifetimes.closed),
    ):
        figures[f"task-{done}-rate"] = timing.read_figures().rate
        figures[f"task-{done}-total"] = timing.total
    return figures


def _list_updater_figures(restorer: RestorerTimings) -> dict[str, float]:
    """Return the figures of a thread's restorer by Kafka Streams' names."""
    restore, follow = restorer.restore.read_figures(), restorer.follow.read_figures()
    records = restorer.records.read_figures()
    return {
        "restore-records-rate": records.ratio,
        "restore-call-rate": records.rate,
        "active-restore-ratio": restore.ratio,
        "standby-update-ratio": follow.ratio,
        "idle-ratio": max(1.0 - restore.ratio - follow.ratio, 0.0),
    }


def _list_task_figures(
    timings: Mapping[str, TaskTimings],
) -> dict[tuple[TaskName, FigureName], float]:
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
        punctuate, lateness = timing.punctuate.read_figures(), timing.lateness.read_figures()
        figures[task, "punctuate-latency-avg"] = punctuate.average * _MS
        figures[task, "punctuate-latency-max"] = punctuate.maximum * _MS
        figures[task, "punctuate-rate"] = punctuate.rate
        figures[task, "punctuate-total"] = timing.punctuate.total
        figures[task, "record-lateness-avg"] = lateness.average * _MS
        figures[task, "record-lateness-max"] = lateness.maximum * _MS
        figures[task, "enforced-processing-rate"] = timing.enforced.read_figures().ratio
        figures[task, "enforced-processing-total"] = timing.enforced.sum
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
