"""Serve queries over HTTP/1.1 from a thread of its own, on a socket that is bound beforehand."""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from starlette.types import ASGIApp

from streams.common.host import Host
from streams.queries.http_connection import HttpConnection

_KEEP_ALIVE_S = 30
_SHUTDOWN_S = 10
"""The seconds after which reads that still run are given up; `RoutedReads.stop_waiting` ends them
before."""


class QueryServer:
    """Serves `api` on a bound socket until `stop_serving`, which ends requests that still run."""

    def __init__(self, api: ASGIApp, bound: socket.socket, host: Host) -> None:
        self._server = uvicorn.Server(
            uvicorn.Config(
                api,
                log_config=None,
                access_log=False,
                lifespan="off",
                loop="asyncio",
                http=HttpConnection,
                ws="none",
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_SHUTDOWN_S,
            )
        )
        self._bound = bound
        self._thread = host.spawn_thread("queries", self._serve_requests)

    def _serve_requests(self) -> None:
        """Serve until `stop_serving`."""
        asyncio.run(self._server.serve(sockets=[self._bound]))

    def stop_serving(self) -> None:
        """Stop serving and free the port."""
        self._server.should_exit = True
        self._thread.join()
        self._bound.close()
