"""Test that a server cuts off a client that stalls in a request while others wait for memory."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

import uvloop

from coordinator.wire.connection import Dispatch
from coordinator.wire.request_memory import COUNTED_BYTES_MIN, STALLED_MS
from coordinator.wire.server import SocketServer
from tests.processes import HANG_LIMIT_S
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.wire.test_stopping import LIMITS

LARGE = 4 * COUNTED_BYTES_MIN


async def stall_two_clients() -> list[bool]:
    """Let two clients stop in the middle of a request; return which of them is cut off."""
    limits = replace(LIMITS, frame_bytes_max=2 * LARGE, request_bytes_max=LARGE)
    clock = FakeClock()
    server = SocketServer(cast(Dispatch, None), limits, clock, clock)
    loop = asyncio.get_running_loop()
    await server.start("127.0.0.1", 0)
    with ExitStack() as exits:
        clients = []
        for _ in range(2):
            client = exits.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            client.setblocking(False)
            await loop.sock_sendall(client, (2 * LARGE).to_bytes(4, "big") + bytes(LARGE))
            clients.append(client)
        async with asyncio.timeout(HANG_LIMIT_S):
            while not clock.scheduled():  # until one waits
                await asyncio.sleep(0.001)
        clock.advance(STALLED_MS + 2_000)
        reads = [asyncio.ensure_future(loop.sock_recv(client, 1)) for client in clients]
        await asyncio.wait(reads, timeout=HANG_LIMIT_S, return_when=asyncio.FIRST_COMPLETED)
        cut_off = [read.done() for read in reads]
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        await server.stop()
        return cut_off


def test_the_first_client_is_cut_off_and_the_second_is_read_from() -> None:
    assert uvloop.run(stall_two_clients()) == [True, False]
