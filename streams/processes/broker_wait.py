"""Wait for a broker at the start of a worker whose application has run before.

Then the settings were right once, and what is wrong may pass: no broker answers, a name does not
resolve, brokers can't answer yet. Where the application has never run in this state directory, the
address may be wrong, and the worker ends soon with the reason. While it waits, /health answers 503
and /live 200, as in an outage later.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from streams.common.addresses import parse_addresses
from streams.common.host import Host
from streams.errors import BrokerUnavailable, ConfigError
from streams.monitoring.health import Health
from streams.monitoring.metrics import WorkerCollector
from streams.processes.endpoints import start_endpoints
from streams.processes.lifecycle import LifecycleState
from streams.settings.config import EMBEDDED, StreamsConfig

log = logging.getLogger(__name__)

T = TypeVar("T")

_LOG_INTERVAL_S = 60.0
_RETRY_S = 0.5


class StartGivenUp(Exception):
    """Signals that a worker was told to stop before a broker answered."""


def has_run_before(config: StreamsConfig, application_id: str) -> bool:
    """Return whether the application has reached its brokers before, with this state directory."""
    return (config.state_dir / application_id / "directory-id").exists()


def wait_for_brokers(
    connect: Callable[[], T],
    config: StreamsConfig,
    worker_number: int,
    host: Host,
    is_given_up: Callable[[], bool],
) -> T:
    """Call `connect` until it does not raise BrokerUnavailable any more, and return its result.

    `worker_number` decides the ports. Raises StartGivenUp when `is_given_up()`, and
    what else `connect` raises.
    """
    try:
        return connect()
    except BrokerUnavailable as error:
        reason = str(error)
    began_s = logged_s = host.monotonic_s()
    log.warning("the application has run before, so a broker is waited for: %s", reason)

    def report_health() -> Health:
        why = f"no broker answers, for {host.monotonic_s() - began_s:.0f} s: {reason}"
        return Health(LifecycleState.CREATED, False, True, [why], ())

    with _open_endpoints(config, worker_number, host, report_health):
        pause = host.create_event()
        while not is_given_up():
            try:
                connected = connect()
            except BrokerUnavailable as error:
                reason = str(error)
                if host.monotonic_s() - logged_s >= _LOG_INTERVAL_S:
                    logged_s = host.monotonic_s()
                    log.warning(
                        "a broker is still waited for, for %.0f s: %s", logged_s - began_s, reason
                    )
                pause.wait(_RETRY_S)
                continue
            log.warning("a broker answers, after %.0f s", host.monotonic_s() - began_s)
            return connected
    raise StartGivenUp(reason)


def refuse_unknown_server_names(config: StreamsConfig) -> None:
    """Raise ConfigError if no name of the bootstrap servers exists, so that no wait would help.

    A look-up that fails for the moment says nothing.
    """
    if config.bootstrap_servers == EMBEDDED:
        return
    for host, port in parse_addresses(config.bootstrap_servers):
        try:
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno != socket.EAI_NONAME:
                return
        else:
            return
    raise ConfigError(
        f"bootstrap_servers={config.bootstrap_servers!r}: no such host: check the address"
    )


@contextmanager
def _open_endpoints(
    config: StreamsConfig, worker_number: int, host: Host, report_health: Callable[[], Health]
) -> Iterator[None]:
    """Answer /health, /live and /metrics while a broker is waited for."""
    collector = WorkerCollector(report_health, dict, host.now_ms)
    endpoints = list(
        start_endpoints(
            config, worker_number, host, report_health=report_health, collector=collector
        )
    )
    try:
        yield
    finally:
        for _, endpoint in endpoints:
            endpoint.close()
