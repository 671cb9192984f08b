"""Delay or lose an answer, or close the connection, as an injected fault says (see `faults`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from coordinator.clock import Scheduler
from coordinator.faults import RequestFault
from coordinator.wire.connection import Disconnect
from coordinator.wire.send_buffer import Answer


async def wait_until_cancelled() -> Answer:
    """Wait until the client closes the connection, which cancels this."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody answers this")


async def apply_fault(
    answer: Answer | Awaitable[Answer], fault: RequestFault, scheduler: Scheduler
) -> Answer:
    """Wait for the answer to a request that took effect, then delay or lose it as the fault says.

    Raises: Disconnect for `cut-after`.
    """
    received = answer if answer is None or isinstance(answer, bytes | list) else await answer
    match fault.action:
        case "delay":
            delay_over = asyncio.get_running_loop().create_future()
            timer = scheduler.call_later(fault.delay_ms, lambda: delay_over.set_result(None))
            try:
                await delay_over
            finally:
                timer.cancel()
            return received
        case "cut-after":
            raise Disconnect("a fault cuts the connection after the request")
        case _:
            return await wait_until_cancelled()
