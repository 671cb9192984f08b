"""Simulate the network that carries frames from clients to the broker, and responses back.

A connection delivers in order and is answered in order, one request at a time, as the broker's own
`wire/connection` does it. What goes wrong is decided by the client's random generator, request by
request: the request or its answer is late or never comes, or the connection is cut once the request
took effect. A client that has waited too long hangs up. What it had sent by then is gone too,
unless the request may come late: then it still reaches the broker, behind what the client says
next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import TYPE_CHECKING, Any

from coordinator.wire.codec import MalformedRequest
from coordinator.wire.connection import Disconnect
from tests.simulation import wire
from tests.simulation.loop import Unanswered

if TYPE_CHECKING:
    from tests.simulation.world import World

REQUEST_TIMEOUT_MS = 1_000
RECONNECT_MS = 50


class Fate(Enum):
    """Names what the network does with one request."""

    SMOOTH = auto()
    REQUEST_LOST = auto()
    ANSWER_LOST = auto()
    REQUEST_LATE = auto()
    ANSWER_LATE = auto()
    CUT = auto()


_ODDS = (
    Fate.REQUEST_LOST,
    Fate.ANSWER_LOST,
    Fate.ANSWER_LOST,
    Fate.REQUEST_LATE,
    Fate.ANSWER_LATE,
    Fate.CUT,
)


@dataclass(slots=True, eq=False)
class Request:
    """Represents one request in transit."""

    client_id: str
    api_key: int
    version: int
    correlation_id: int
    frame: bytes
    answer: asyncio.Future[Any]
    fate: Fate
    late_ms: float
    may_be_late: bool
    given: Any
    sent_at_ms: float


class Connection:
    """Represents one client's connection.

    `random` is the client's own; `trouble` the probability of a bad fate.
    """

    def __init__(self, world: World, client_id: str, random: Random, trouble: float) -> None:
        self.client_id = client_id
        self.random = random
        self.trouble = trouble
        self._world = world
        self._correlation_id = 0
        self._arrives_ms = 0.0
        self._queue: deque[Request] = deque()
        self._sent: dict[int, Request] = {}
        self._waiting: asyncio.Future[Any] | None = None  # the broker answers later
        self._is_open = False
        self._is_deaf = False
        self._is_mute = False
        self._delivers_ms = 0.0
        self._line = 0  # counts the times that the client has connected

    async def send_request(
        self,
        api_key: int,
        version: int,
        given: Any,
        *,
        may_be_late: bool = False,
        timeout_ms: float = REQUEST_TIMEOUT_MS,
    ) -> Any:
        """Send a request and return the decoded response.

        Raises Unanswered after a time-out, a cut, or if nobody listens.
        """
        return await self.send(
            api_key, version, given, may_be_late=may_be_late, timeout_ms=timeout_ms
        )

    def send(
        self,
        api_key: int,
        version: int,
        given: Any,
        *,
        may_be_late: bool = False,
        timeout_ms: float = REQUEST_TIMEOUT_MS,
    ) -> asyncio.Future[Any]:
        """Send a request behind others that are in transit; return a future of the response."""
        loop = self._world.loop
        answer = loop.create_future()
        if not self._world.is_listening:
            loop.after_ms(RECONNECT_MS, _fail, answer, "nobody listens")
            return answer
        if not self._is_open:
            self._is_open = True
            self._line += 1
            self._arrives_ms = self._delivers_ms = 0.0
            self._is_deaf = self._is_mute = False
            self._world.connections[self] = None
        self._correlation_id += 1
        fate, late_ms = self._draw()
        request = Request(
            self.client_id,
            api_key,
            version,
            self._correlation_id,
            wire.encode(api_key, version, self.client_id, self._correlation_id, given),
            answer,
            fate,
            late_ms,
            may_be_late,
            given,
            loop.elapsed_ms,
        )
        self._sent[request.correlation_id] = request
        latency_ms = self.random.uniform(0.5, 4)
        if fate is Fate.REQUEST_LATE:
            latency_ms += late_ms
        self._arrives_ms = max(self._arrives_ms, loop.elapsed_ms + latency_ms)
        if fate is Fate.REQUEST_LOST:
            self._is_deaf = True  # what is sent behind it on this connection is lost as well
        if not self._is_deaf:
            loop.after_ms(self._arrives_ms - loop.elapsed_ms, self._arrive, self._line, request)
        loop.after_ms(timeout_ms + late_ms / 4, self._time_out, self._line, request)
        return answer

    def cut(self) -> None:
        """Cut the connection, so that all requests in transit stay unanswered."""
        if not self._is_open:
            return
        self._is_open = False
        self._world.connections.pop(self, None)
        self._queue.clear()
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        sent, self._sent = self._sent, {}
        for request in sent.values():
            _fail(request.answer, "cut off")

    def _draw(self) -> tuple[Fate, float]:
        if self.trouble and self.random.random() < self.trouble:
            return self.random.choice(_ODDS), self.random.uniform(50, 2_500)
        return Fate.SMOOTH, 0.0

    def _time_out(self, line: int, request: Request) -> None:
        if line == self._line and request.correlation_id in self._sent:
            self.cut()

    def _arrive(self, line: int, request: Request) -> None:
        if line == self._line and self._is_open:
            self._queue.append(request)
            self._work()
        elif request.may_be_late and self._world.is_listening:
            with suppress(MalformedRequest, Disconnect):
                self._world.dispatch(request, self._observer(request))

    def _work(self) -> None:
        while self._queue and self._waiting is None and self._is_open:
            request = self._queue.popleft()
            line = self._line
            self._handle(request, line)

    def _handle(self, request: Request, line: int) -> None:
        try:
            found = self._world.dispatch(request, self._observer(request))
        except (MalformedRequest, Disconnect):
            self.cut()
            return
        if isinstance(found, asyncio.Future):
            self._waiting = found
            found.add_done_callback(lambda future: self._answered(request, line, future))
        elif found is not None and line == self._line:
            self._reply(request, line, found)

    def _observer(self, request: Request) -> Callable[[bytes], Any]:
        def read(answer: bytes) -> Any:
            response = wire.decode(request.api_key, request.version, request.correlation_id, answer)
            self._world.observe(request, response, answer)
            return response

        return read

    def _answered(self, request: Request, line: int, future: asyncio.Future[Any]) -> None:
        if self._waiting is future:
            self._waiting = None
        if future.cancelled() or line != self._line or not self._is_open:
            return
        if future.exception() is not None:
            self.cut()
            return
        self._reply(request, line, future.result())
        self._work()

    def _reply(self, request: Request, line: int, response: Any) -> None:
        if request.fate is Fate.CUT:
            self.cut()
        elif request.fate is Fate.ANSWER_LOST:
            self._is_mute = True  # what comes behind it on this connection is lost as well
        elif not self._is_mute:
            late_ms = request.late_ms if request.fate is Fate.ANSWER_LATE else 0.0
            delay_ms = self.random.uniform(0.5, 4) + late_ms
            elapsed_ms = self._world.loop.elapsed_ms
            self._delivers_ms = max(self._delivers_ms, elapsed_ms + delay_ms)
            self._world.loop.after_ms(
                self._delivers_ms - elapsed_ms, self._deliver, line, request, response
            )

    def _deliver(self, line: int, request: Request, response: Any) -> None:
        if line != self._line or self._sent.pop(request.correlation_id, None) is None:
            return
        if not request.answer.done():
            request.answer.set_result(response)


def _fail(answer: asyncio.Future[Any], why: str) -> None:
    if not answer.done():
        answer.set_exception(Unanswered(why))
