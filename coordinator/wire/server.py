"""Listen for Kafka clients, and accept their connections within limits."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from coordinator.clock import Clock, Scheduler, Timer
from coordinator.wire.connection import ClientConnection, Dispatch
from coordinator.wire.connections import ConnectionRegistry
from coordinator.wire.request_memory import RequestMemory, StalledRequestWatch

CLOSE_TIMEOUT_S = 1.0
_IDLE_CHECKS = 10  # checks for idle connections within the time that they may be idle


def format_address(host: str, port: int) -> str:
    """Return `host:port` as clients read it, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class CannotListen(Exception):
    """Signals an address that can't be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Holds the limits on clients' connections and requests.

    Kafka's settings, some by shorter names.
    """

    frame_bytes_max: int
    queue_max: int  # requests of one connection that wait
    request_bytes_max: int  # of all connections; -1: no limit
    connections_max: int
    connections_per_host_max: int
    idle_ms_max: int  # -1: connections may be idle for ever


class SocketServer:
    """Listens for clients from `start` to `stop`; `port` is the port that it got."""

    def __init__(
        self, dispatch: Dispatch, limits: ConnectionLimits, clock: Clock, scheduler: Scheduler
    ) -> None:
        self.connections = ConnectionRegistry(
            limits.connections_max, limits.connections_per_host_max
        )
        request_memory = RequestMemory(limits.request_bytes_max)
        self._stalled_requests = StalledRequestWatch(request_memory, clock, scheduler)
        self._create_connection = partial(
            ClientConnection,
            dispatch,
            limits.frame_bytes_max,
            limits.queue_max,
            self.connections,
            request_memory,
            clock,
        )
        self._idle_ms_max = limits.idle_ms_max
        self._clock = clock
        self._scheduler = scheduler
        self._idle_check_timer: Timer | None = None
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on an address.

        Raises: CannotListen if the address is taken, or isn't this machine's.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._create_connection, host, port, backlog=1024
            )
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise CannotListen(
                f"can't listen on {format_address(host, port)} ({reason}): "
                "stop what uses it, or choose another host or port (0: any free port)"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        if self._idle_ms_max >= 0:
            self._schedule_idle_check()

    def _schedule_idle_check(self) -> None:
        self._idle_check_timer = self._scheduler.call_later(
            max(1, self._idle_ms_max // _IDLE_CHECKS), self._close_idle_connections
        )

    def _close_idle_connections(self) -> None:
        self.connections.close_idle(self._clock.monotonic_ms() - self._idle_ms_max)
        self._schedule_idle_check()

    async def stop(self) -> None:
        """Stop listening and close every connection.

        Answers that are written are still sent, unless their client doesn't read them in
        CLOSE_TIMEOUT_S.
        """
        if self._server is None:
            return
        self._server.close()
        if self._idle_check_timer is not None:
            self._idle_check_timer.cancel()
        self._stalled_requests.stop_watching()
        # A connection that was accepted in this turn of the loop registers itself in the next one.
        await asyncio.sleep(0)
        for connection in self.connections:
            connection.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                while len(self.connections):
                    await asyncio.sleep(0.001)
        for connection in self.connections:
            connection.abort()
        await self._server.wait_closed()
