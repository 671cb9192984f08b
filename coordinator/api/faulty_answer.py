"""What a fault does to an answer that is there, or on its way (see `faults`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from coordinator.clock import Scheduler
from coordinator.faults import RequestFault
from coordinator.wire.connection import Disconnect
from coordinator.wire.outgoing import Answer


async def never() -> Answer:
    """Until the client hangs up."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody answers this")


async def faulty(
    answer: Answer | Awaitable[Answer], fault: RequestFault, scheduler: Scheduler
) -> Answer:
    """The answer to a request that took effect, as the client gets it."""
    given = answer if answer is None or isinstance(answer, bytes | list) else await answer
    match fault.action:
        case "delay":
            waited = asyncio.get_running_loop().create_future()
            timer = scheduler.call_later(fault.delay_ms, lambda: waited.set_result(None))
            try:
                await waited
            finally:
                timer.cancel()
            return given
        case "cut-after":
            raise Disconnect("a fault cuts the connection after the request")
        case _:
            return await never()
