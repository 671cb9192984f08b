"""Create the collector of a worker's metrics, out of its threads and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import cast, get_args

from streams.monitoring.database_figures import DatabaseFigureReader
from streams.monitoring.health import Health
from streams.monitoring.kafka_streams_figures import StreamsClient
from streams.monitoring.metrics import WorkerCollector
from streams.monitoring.state_disk import read_disk_space
from streams.monitoring.store_operation_figures import read_store_operation_figures
from streams.monitoring.store_sizes import measure_store_sizes
from streams.processes.running import GLOBAL_THREAD
from streams.runtime.threads.query_measurements import QueryMeasurements
from streams.runtime.threads.stream_thread import StreamThread
from streams.runtime.threads.worker_resources import WorkerResources
from streams.settings.choices import RecordingLevelName
from streams.topology.source_steps import SourceSteps


def create_worker_collector(
    worker: WorkerResources,
    threads: Sequence[StreamThread],
    report_health: Callable[[], Health],
    queries: QueryMeasurements | None,
) -> WorkerCollector:
    """Create the collector of a worker's metrics; it reads them when it is asked."""
    databases = DatabaseFigureReader(worker.directory.build_store_path, worker.host.monotonic_s)
    application_id = worker.topology.application_id
    return WorkerCollector(
        report_health,
        lambda: {
            **{thread.name: thread.sum_counters() for thread in threads},
            **_count_global_failures(worker),
        },
        worker.host.now_ms,
        get_measurements=lambda: {thread.name: thread.loop.measurements for thread in threads},
        measure_store_sizes=lambda: measure_store_sizes(
            [task for thread in threads for task in thread.current_tasks()],
            worker.directory.build_store_path,
        ),
        read_database_figures=lambda: chain(
            databases.read_figures({thread.name: thread.current_tasks() for thread in threads}),
            read_store_operation_figures(
                {thread.name: thread.current_tasks() for thread in threads}
            ),
        ),
        source_steps=SourceSteps(worker.topology),
        client=StreamsClient(
            f"{application_id}-{worker.process_id}",
            application_id,
            worker.process_id,
            get_args(RecordingLevelName).index(worker.config.metrics_recording_level),
        ),
        get_tasks=lambda: {thread.name: thread.current_tasks() for thread in threads},
        records_level=lambda level: worker.config.records_metrics(
            cast("RecordingLevelName", level)
        ),
        read_client_statistics=worker.clients.statistics.read_statistics,
        queries=queries,
        commit_interval_s=worker.config.commit_every_ms / 1_000,
        read_disk_space=lambda: read_disk_space(worker.directory.path),
    )


def _count_global_failures(worker: WorkerResources) -> dict[str, dict[str, int]]:
    """Return the counters of the global tables' thread by its name; empty if there is none."""
    tables = worker.global_tables
    return {} if tables is None else {GLOBAL_THREAD: tables.count_failures()}
