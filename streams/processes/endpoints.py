"""Answer GET /health, /live and /metrics of a worker, on the ports that its settings name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeAlias

from streams.common.addresses import format_address
from streams.common.host import Host
from streams.monitoring.health import Health
from streams.monitoring.http_endpoint import HttpEndpoint, HttpResponse
from streams.monitoring.metrics import WorkerCollector, render_prometheus_text
from streams.monitoring.process_figures import render_process_figures
from streams.settings.config import StreamsConfig

SettingName: TypeAlias = str

log = logging.getLogger(__name__)

_JSON = "application/json"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def start_endpoints(
    config: StreamsConfig,
    worker_number: int,
    host: Host,
    *,
    report_health: Callable[[], Health],
    collector: WorkerCollector,
) -> Iterator[tuple[SettingName, HttpEndpoint]]:
    """Start the HTTP endpoints that the settings ask for, and yield each with its setting's name.

    Ports are counted up by the worker's number. Raises ConfigError if a port is not available.
    """

    def answer_health() -> HttpResponse:
        report = report_health()
        return HttpResponse(200 if report.healthy else 503, _JSON, report.as_json())

    def answer_live() -> HttpResponse:
        report = report_health()
        return HttpResponse(200 if report.live else 503, _JSON, report.as_json())

    def answer_metrics() -> HttpResponse:
        text = render_prometheus_text(collector) + render_process_figures()
        return HttpResponse(200, _PROMETHEUS, text)

    answers = {"/health": answer_health, "/live": answer_live, "/metrics": answer_metrics}
    wanted = {"health_port": answers, "metrics_port": {"/metrics": answer_metrics}}
    for setting, paths in wanted.items():
        port = getattr(config, setting)
        same = setting == "metrics_port" and port == config.health_port
        if port is None or (port and same):
            continue
        wanted_port = port and port + worker_number
        endpoint = HttpEndpoint(setting, config.health_host, wanted_port, paths, host)
        address = format_address((config.health_host, endpoint.port))
        log.debug("%s: listening on %s", setting, address)
        yield setting, endpoint
