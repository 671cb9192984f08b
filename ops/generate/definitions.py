"""List the figures that queries may name: those of a worker and those of the broker."""

from __future__ import annotations

from coordinator.metrics.definitions import all_definitions as broker_definitions
from ops.generate.queries import list_sample_names
from streams.monitoring.definitions.catalog import all_definitions as worker_definitions


def list_defined_samples() -> set[str]:
    """Return the names of all samples that a worker or a broker can have."""
    return {*list_sample_names(broker_definitions()), *list_sample_names(worker_definitions())}
