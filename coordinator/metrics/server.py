"""Serves the figures to Prometheus by an HTTP server of its own, on this machine only."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, start_http_server

from coordinator.clock import Clock
from coordinator.coordinators import Coordinators
from coordinator.metrics.coordinator_figures import CoordinatorCollector

METRICS_HOST = "127.0.0.1"


def start_metrics_server(
    coordinators: Coordinators, clock: Clock, port: int
) -> tuple[int, Callable[[], None]]:
    """Serve metrics on a port of this machine; return the port and a function that stops it.

    Port 0 stands for any free one.

    Raises: OSError if the port is taken.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CoordinatorCollector(coordinators, clock))
    server, thread = start_http_server(port, METRICS_HOST, registry)

    def stop_server() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, stop_server
