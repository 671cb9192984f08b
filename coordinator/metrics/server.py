"""Serve the figures to Prometheus by an HTTP server of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from prometheus_client import CollectorRegistry, start_http_server

from coordinator.metrics.broker_figures import BrokerCollector, MeasuredBroker

Port: TypeAlias = int
StopServer: TypeAlias = Callable[[], None]


def start_metrics_server(broker: MeasuredBroker, host: str, port: int) -> tuple[Port, StopServer]:
    """Serve metrics at an address of this machine; return the port and a function that stops it.

    Port 0 stands for any free one.

    Raises: OSError if the port is taken, or the address isn't this machine's.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BrokerCollector(broker))
    server, thread = start_http_server(port, host, registry)

    def stop_server() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, stop_server
