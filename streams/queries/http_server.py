"""Serve queries over HTTP/1.1 from a thread of its own, on a socket that is bound beforehand."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from functools import partial
from typing import Any, cast

import uvicorn
import uvloop

from streams.common.host import Host
from streams.queries.http_connection import HttpConnection
from streams.queries.query_tls import CHECK_INTERVAL_S, ServerCertificate
from streams.queries.request_gate import RequestGate
from streams.runtime.threads.query_measurements import QueryMeasurements

_KEEP_ALIVE_S = 30
SHUTDOWN_S = 10
"""The seconds after which reads that still run are given up; `RoutedReads.stop_waiting` ends them
before."""


LINGER_S = 0.5
"""The seconds for which a server that stops answers clients that have not heard of it."""
_LINGER_POLL_S = 0.01


class QueryServer:
    """Serves `api` on a bound socket until `stop_serving`, which ends requests that still run.

    With a `certificate` it serves over TLS, and takes up the changes of its files. Connections that
    it refuses are counted in the `measurements`.
    """

    def __init__(
        self,
        api: RequestGate,
        bound: socket.socket,
        host: Host,
        certificate: ServerCertificate | None = None,
        measurements: QueryMeasurements | None = None,
    ) -> None:
        config = uvicorn.Config(
            api,
            log_config=None,
            access_log=False,
            lifespan="off",
            loop="asyncio",
            http=cast(
                Any,
                partial(
                    HttpConnection,
                    measurements=measurements,
                    create_prompt_response=api.create_prompt_response,
                ),
            ),
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=SHUTDOWN_S,
        )
        config.load()
        self._certificate = certificate
        if certificate is not None:
            config.ssl = certificate.context
        self._server = uvicorn.Server(config)
        self._bound = bound
        self._thread = host.spawn_thread("queries", self._serve_requests)

    def _serve_requests(self) -> None:
        """Serve until `stop_serving`."""
        with asyncio.Runner(loop_factory=_QueryLoop) as runner:
            runner.run(self._serve_until_stopped())

    async def _serve_until_stopped(self) -> None:
        """Serve, and take up changed certificates, until `stop_serving`."""
        watching = asyncio.create_task(self._watch_certificate())
        await self._server.serve(sockets=[self._bound])
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

    async def _watch_certificate(self) -> None:
        """Take up changes of the certificate's files every few seconds."""
        while self._certificate is not None:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self._certificate.take_changes()

    def stop_serving(self) -> None:
        """Stop serving and free the port.

        For a moment requests are answered still, on connections that end with the answer: a client
        that keeps one open may be sending. Then idle ones are closed.
        """
        give_up_at_s = time.monotonic() + LINGER_S
        while self._server.server_state.connections and time.monotonic() < give_up_at_s:
            time.sleep(_LINGER_POLL_S)
        self._server.should_exit = True
        self._thread.join()
        self._bound.close()


class _QueryLoop(uvloop.Loop):
    """Bounds the time in which a client has to finish the handshake of TLS."""

    async def create_server(self, *arguments: Any, **options: Any) -> Any:
        """Create a server as asyncio does."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", HttpConnection.arrival_s)
        return await super().create_server(*arguments, **options)
