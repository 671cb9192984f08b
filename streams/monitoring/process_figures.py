"""Tell the figures of the process: CPU, memory, open files and Python's garbage collection.

prometheus_client measures them, and defines their names; all workers of one process show the same
ones.
"""

from __future__ import annotations


def render_process_figures() -> bytes:
    """Return the figures of this process in Prometheus' text format.

    Where there is no /proc, as on macOS, those of garbage collection alone.
    """
    from prometheus_client import (
        CollectorRegistry,
        GCCollector,
        ProcessCollector,
        generate_latest,
    )

    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return generate_latest(registry)
