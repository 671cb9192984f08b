"""Open the port on which a worker answers queries, and say where other workers reach it.

Server and client are imported when they are needed: without a `query_port` a worker starts without
them.
"""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from streams.common.addresses import format_address, parse_address
from streams.common.host import Host
from streams.errors import ConfigError
from streams.processes.running import RunningApp
from streams.queries.query_tls import QueryTls, ServerCertificate
from streams.queries.routed_reads import RoutedReads
from streams.runtime.threads.query_measurements import QueryMeasurements
from streams.settings.config import StreamsConfig

if TYPE_CHECKING:
    from streams.queries.endpoint_client import EndpointClient


SWITCH_INTERVAL_S = 0.001
"""The seconds after which a thread gets Python's interpreter from one that never rests: Python's
5 ms are as long as ten look-ups take."""


class QueryEndpoint:
    """Holds the bound port of a worker that answers queries, and its `address` for other workers.

    Without `query_port` there is neither. Ports are counted up by the worker's number.
    """

    def __init__(self, config: StreamsConfig, worker_number: int, exits: ExitStack) -> None:
        self._token = config.query_token.get_secret_value()
        self._tls = QueryTls(
            config.query_ssl_certificate_location,
            config.query_ssl_key_location,
            config.query_ssl_key_password.get_secret_value(),
            config.query_ssl_ca_location,
        )
        self._bound: socket.socket | None = None
        self.address = ""
        self.measurements: QueryMeasurements | None = None
        if config.query_port is None:
            return
        self.measurements = QueryMeasurements()
        port = config.query_port and config.query_port + worker_number
        self._bound = _bind_port(config.query_host, port)
        exits.callback(self._bound.close)
        if config.application_server:
            host, port = parse_address(config.application_server)
            self.address = format_address((host, port + worker_number))
        else:
            self.address = format_address((config.query_host, self._bound.getsockname()[1]))

    def serve_queries(self, running: RunningApp, host: Host, exits: ExitStack) -> None:
        """Let a worker read the stores of all, and serve queries, until `exits` is closed."""
        running.reads = reads = RoutedReads(running.local_stores, self._create_client, self.address)
        exits.callback(reads.close)
        self._tls.create_client_context()  # whose errors are told now, and not by the first query
        if self._bound is not None:
            from streams.queries.http_api import create_http_api
            from streams.queries.http_server import QueryServer

            certificate = (
                None
                if self._tls.certificate is None
                else ServerCertificate(self._tls, host.monotonic_s)
            )
            api = create_http_api(reads, self._token, self.measurements)
            server = QueryServer(api, self._bound, host, certificate, self.measurements)
            exits.callback(server.stop_serving)
            exits.callback(reads.stop_waiting)
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL_S))
            running.ports["query_port"] = self._bound.getsockname()[1]

    def _create_client(self) -> EndpointClient:
        """Create the client for other workers, with the token that they share."""
        from streams.queries.endpoint_client import EndpointClient

        return EndpointClient(self._token, self._tls)


def _bind_port(host: str, port: int) -> socket.socket:
    """Return a bound socket; port 0 takes a free one. Raises ConfigError.

    It is bound before the worker joins its group, so that the group can be told its port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named so that asyncio knows the connections for TCP, and sends answers without a delay.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ConfigError(f"query_port {port} on {host}: {error.strerror}") from error
    return bound
