"""The listening socket. The only file of the broker that opens one."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from functools import partial

from coordinator.wire.connection import Connection, Dispatch

GRACE_S = 1.0


class CannotListen(Exception):
    """The address can't be used; the message says why and what to do."""


class Server:
    """Listens once `start` has returned; `port` is the one it got."""

    def __init__(
        self, dispatch: Dispatch, frame_bytes_max: int, queue_max: int, queue_bytes_max: int
    ) -> None:
        """See `connection` for the limits: they are each connection's own."""
        self._connections: set[Connection] = set()
        self._factory = partial(
            Connection, dispatch, frame_bytes_max, queue_max, queue_bytes_max, self._connections
        )
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen. CannotListen if the address is taken, or isn't this machine's."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._factory, host, port, backlog=1024)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise CannotListen(
                f"can't listen on {host}:{port} ({reason}): "
                "stop what uses it, or choose another host or port (0: any free port)"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and close every connection; answers already written go out, unless their
        client doesn't read them in `GRACE_S`."""
        if self._server is None:
            return
        self._server.close()
        for connection in tuple(self._connections):
            connection.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                while self._connections:
                    await asyncio.sleep(0.001)
        for connection in tuple(self._connections):
            connection.abort()
        await self._server.wait_closed()
