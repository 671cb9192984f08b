"""Serve queries over HTTP/1.1 from a thread of its own, on a socket that is bound beforehand."""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from starlette.applications import Starlette

from streams.common.host import Host

_CONCURRENT_REQUESTS_MAX = 256
_KEEP_ALIVE_S = 30
_SHUTDOWN_S = 2


class QueryServer:
    """Serves `api` on a bound socket until `close`, which ends requests that still run."""

    def __init__(self, api: Starlette, bound: socket.socket, host: Host) -> None:
        self._server = uvicorn.Server(
            uvicorn.Config(
                api,
                log_config=None,
                access_log=False,
                lifespan="off",
                loop="asyncio",
                http="h11",
                server_header=False,
                limit_concurrency=_CONCURRENT_REQUESTS_MAX,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_SHUTDOWN_S,
            )
        )
        self._bound = bound
        self._thread = host.spawn_thread("queries", self._serve_requests)

    def _serve_requests(self) -> None:
        """Serve until `close`."""
        asyncio.run(self._server.serve(sockets=[self._bound]))

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.should_exit = True
        self._thread.join()
        self._bound.close()
