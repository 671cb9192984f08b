"""Test that a socket server that stops leaves no connection open."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import pytest
import uvloop

from coordinator.clock import Scheduler
from coordinator.wire.connection import Dispatch
from coordinator.wire.server import ConnectionLimits, SocketServer
from tests.unit.coordinator.fakes import FakeClock

LIMITS = ConnectionLimits(
    frame_bytes_max=1000,
    queue_max=10,
    request_bytes_max=-1,
    connections_max=100,
    connections_per_host_max=100,
    idle_ms_max=-1,
)


async def stop_soon_after_a_connection(turns: int) -> bytes:
    """Let clients connect and stop `turns` turns of the loop later; return what a client reads."""
    server = SocketServer(cast(Dispatch, None), LIMITS, FakeClock(), cast(Scheduler, None))
    await server.start("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(5)
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.stop()
        await asyncio.sleep(0.01)
        try:
            return client.recv(1)
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize("turns", range(4))
def test_a_connection_that_is_accepted_while_the_server_stops_is_closed(turns: int) -> None:
    # uvloop raises "Resource busy" at the end if a connection is left.
    assert uvloop.run(stop_soon_after_a_connection(turns)) == b""
