"""List the figures that queries may name: those of a worker and those of the broker."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.metrics.definitions import all_definitions as broker_definitions
from ops.generate.queries import list_samples
from streams.monitoring.health import Health
from streams.monitoring.metrics import COUNTER_HELP, WorkerCollector


def list_defined_samples() -> set[str]:
    """Return the names of all samples that a worker or a broker can have."""
    return {*list_samples(broker_definitions()), *_list_worker_samples()}


def _list_worker_samples() -> Iterator[str]:
    """Yield the names of the samples of a worker, as its collector describes them."""
    health = Health("RUNNING", healthy=True, live=True, why=(), threads=())
    counters = {"thread": dict.fromkeys(COUNTER_HELP, 0)}
    collector = WorkerCollector(lambda: health, lambda: counters, lambda: 0)
    for family in collector.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
        yield from (family.name + each for each in suffixes.get(family.type, ("",)))
