"""Read how often and how long the operations of stores were done, when metrics are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from state.errors import StateError
from streams.graph.nodes import StoreKind
from streams.monitoring.database_figures import DatabaseFigures
from streams.monitoring.definitions.rocksdb import name_state_label
from streams.monitoring.definitions.store_operations import SUPPRESSION_LABEL
from streams.runtime.tasks.metered_stores import StoreMeter
from streams.runtime.tasks.task import Task

_NS = 1_000_000_000


def read_store_operation_figures(
    tasks_by_thread: Mapping[str, Iterable[Task]],
) -> Iterator[DatabaseFigures]:
    """Yield the figures of operations, iterators and buffers of each store of active tasks."""
    for thread, tasks in tasks_by_thread.items():
        for task in tasks:
            specs, stores = task.store_specs, task.stores.all_stores()
            for name, meter in task.stores.meters.items():
                spec = specs[name]
                if spec.kind is StoreKind.BUFFER:
                    values, label = _list_buffer_figures(meter), SUPPRESSION_LABEL
                else:
                    values = _list_operation_figures(meter)
                    label = name_state_label(spec.kind, persistent=spec.persistent)
                if spec.kind in (StoreKind.KEY_VALUE, StoreKind.VERSIONED):
                    # The stream thread may write to the store while its writes are looked at.
                    with suppress(RuntimeError, KeyError, StateError):
                        values["uncommitted-bytes"] = stores[name].uncommitted_bytes
                yield DatabaseFigures(thread, task.name, name, label, values)


def _list_operation_figures(meter: StoreMeter) -> dict[str, float]:
    """Return the figures of a store by Kafka Streams' names."""
    values: dict[str, float] = {"num-open-iterators": meter.iterators.count}
    durations = meter.iterators.durations.read_figures()
    values["iterator-duration-avg"] = durations.average * _NS
    values["iterator-duration-max"] = durations.maximum * _NS
    if (opened_at_ms := meter.iterators.oldest_opened_at_ms) is not None:
        values["oldest-iterator-open-since-ms"] = opened_at_ms
    for operation, timing in meter.timings.items():
        read = timing.read_figures()
        values[f"{operation}-latency-avg"] = read.average * _NS
        values[f"{operation}-latency-max"] = read.maximum * _NS
        values[f"{operation}-rate"] = read.rate
    return values


def _list_buffer_figures(meter: StoreMeter) -> dict[str, float]:
    """Return the figures of a suppression's buffer by Kafka Streams' names."""
    records, size = meter.buffered_records.read_figures(), meter.buffered_bytes.read_figures()
    return {
        "suppression-buffer-count-avg": records.average,
        "suppression-buffer-count-max": records.maximum,
        "suppression-buffer-size-avg": size.average,
        "suppression-buffer-size-max": size.maximum,
    }
