"""Serves one client's connection: reads frames, writes answers in the order of the requests.

A request is answered before the next one is handled, as in Kafka. If the handler returns the answer
itself, it is written at once and no task is created; if the answer comes later (a long poll, a
rebalance), what the client sends meanwhile waits in a queue.

There is back-pressure both ways: while the client doesn't read its answers, no request is handled;
and nothing more is read from the socket once `queue_max` requests or QUEUE_BYTES_MAX bytes of them
wait, or while the requests of all clients together take too much memory (see `request_memory`).
Trace: wire/server -> here -> api/router.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

from coordinator.clock import Clock
from coordinator.wire.codec import MalformedRequest
from coordinator.wire.connections import Connections
from coordinator.wire.frames import FrameReader, MalformedFrame
from coordinator.wire.intake import Intake
from coordinator.wire.outgoing import CHUNK_BYTES, Answer, Outgoing

log = logging.getLogger(__name__)

# Limit on requests that wait behind another one. Kafka reads none before that one is answered.
QUEUE_BYTES_MAX = 1_048_576
# Small answers are collected until there are this many, or until one is large.
_READY_MAX = 16
_LARGE_BYTES = 16_384
# Gets a frame and the client's host; returns the answer, or an awaitable if it comes later.
Dispatch = Callable[[bytes, str], Answer | Awaitable[Answer]]


class Disconnect(Exception):
    """Asks to close the connection, where no response can say that something is wrong."""


class Connection(asyncio.Protocol):
    """Runs one client's requests through `dispatch`, one after the other."""

    def __init__(
        self,
        dispatch: Dispatch,
        frame_bytes_max: int,
        queue_max: int,
        connections: Connections,
        intake: Intake,
        clock: Clock,
    ) -> None:
        self._dispatch = dispatch
        self._frames = FrameReader(frame_bytes_max)
        self._queue: deque[bytes] = deque()
        self._queue_max = queue_max
        self._queue_bytes = 0
        self._connections = connections
        self._intake = intake
        self._clock = clock
        self._transport: asyncio.Transport
        self.host = ""
        self._port = 0
        self.active_ms = clock.monotonic_ms()
        self._answering: asyncio.Future[Answer] | None = None
        self._ready: list[bytes] = []
        self._outgoing = Outgoing()
        self._client_reads = True
        self._reading = True

    @property
    def is_waiting(self) -> bool:
        """Whether a request of this client is still to be answered."""
        return self._answering is not None

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._transport.set_write_buffer_limits(high=CHUNK_BYTES)
        self.host, self._port = (transport.get_extra_info("peername") or ("", 0))[:2]
        if not self._connections.add(self):
            self._close(Disconnect("too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self)
        self._drop_queue()
        self._intake.leave(self)
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        self.active_ms = self._clock.monotonic_ms()
        try:
            for frame in self._frames.feed(data):
                self._queue.append(frame)
                self._queue_bytes += len(frame)
        except MalformedFrame as error:
            self._close(error)
            return
        self._work()

    def pause_writing(self) -> None:
        self._client_reads = False

    def resume_writing(self) -> None:
        self.active_ms = self._clock.monotonic_ms()
        self._client_reads = True
        self._send()
        self._work()

    def resume(self) -> None:
        """Read from the client again, unless its own limits forbid it."""
        self._throttle_reading()

    # Called by the server

    def close(self) -> None:
        """Close the connection once what was written has been sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once and drop what wasn't sent."""
        self._transport.abort()

    # Requests, one after the other

    def _work(self) -> None:
        while (
            self._queue
            and self._answering is None
            and self._client_reads
            and not self._outgoing
            and not self._transport.is_closing()
        ):
            frame = self._queue.popleft()
            self._queue_bytes -= len(frame)
            self._answer(frame)
        self._flush()
        self._throttle_reading()

    def _throttle_reading(self) -> None:
        has_room = self._intake.hold(self, self._frames.held_bytes + self._queue_bytes)
        wanted = (
            has_room and len(self._queue) < self._queue_max and self._queue_bytes < QUEUE_BYTES_MAX
        )
        if wanted != self._reading and not self._transport.is_closing():
            self._reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _answer(self, frame: bytes) -> None:
        try:
            answer = self._dispatch(frame, self.host)
        except (MalformedRequest, Disconnect) as error:
            self._close(error)
            return
        if answer is None or isinstance(answer, bytes | list):
            self._write(answer)
        else:
            self._answering = asyncio.ensure_future(answer)
            self._answering.add_done_callback(self._answered)

    def _answered(self, future: asyncio.Future[Answer]) -> None:
        self._answering = None
        if future.cancelled() or self._transport.is_closing():
            return
        error = future.exception()
        if error is not None:
            self._close(error)
            return
        self._write(future.result())
        self._work()

    def _write(self, answer: Answer) -> None:
        """Send an answer, or keep a small one for `_flush_ready_answers`.

        A system call for each of many small answers would cost as much as creating them.
        """
        if isinstance(answer, bytes):
            self._ready.append(answer)
            if len(self._ready) >= _READY_MAX or len(answer) >= _LARGE_BYTES:
                self._flush()
        elif answer is not None:
            self._flush()
            self._outgoing.add(answer)
            self._send()

    def _flush(self) -> None:
        if self._ready:
            self._transport.write(b"".join(self._ready))
            self._ready.clear()

    def _send(self) -> None:
        """Send as much of the answer as the transport has room for."""
        while self._outgoing and self._client_reads and not self._transport.is_closing():
            try:
                self._transport.write(self._outgoing.take())
            except OSError as error:
                self._close(error)

    def _close(self, error: BaseException) -> None:
        log.warning("closing the connection of %s:%s: %s", self.host, self._port, error)
        self._flush()
        self._drop_queue()
        self._transport.close()

    def _drop_queue(self) -> None:
        self._outgoing.clear()
        self._queue.clear()
        self._queue_bytes = 0
