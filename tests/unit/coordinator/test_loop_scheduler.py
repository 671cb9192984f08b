"""Test when the broker's scheduler makes a call that is due at once."""

from __future__ import annotations

import asyncio
import socket

from coordinator.event_loop import LoopScheduler


async def _order_of_calls() -> list[str]:
    """Schedule a call while bytes wait in a socket; return what the loop has done, in order."""
    loop = asyncio.get_running_loop()
    order: list[str] = []
    done = asyncio.Event()
    reader, writer = socket.socketpair()
    with reader, writer:
        writer.send(b"x")

        def read_socket() -> None:
            loop.remove_reader(reader)
            order.append("read")
            done.set()

        loop.add_reader(reader, read_socket)
        LoopScheduler().call_later(0, lambda: order.append("call"))
        await done.wait()
    return order


def test_a_call_that_is_due_at_once_comes_before_what_waits_in_a_socket() -> None:
    assert asyncio.run(_order_of_calls()) == ["call", "read"]
