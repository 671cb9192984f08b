"""Serve one client's connection: read frames, and write answers in the order of the requests.

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
from collections.abc import Awaitable
from types import NoneType
from typing import Protocol, cast

from coordinator.clock import Clock
from coordinator.wire.codec import MalformedRequest
from coordinator.wire.connections import ConnectionRegistry
from coordinator.wire.frames import FrameReader, MalformedFrame
from coordinator.wire.request_memory import RequestMemory
from coordinator.wire.send_buffer import CHUNK_BYTES, Answer, SendBuffer

log = logging.getLogger(__name__)

# Limit on requests that wait behind another one. Kafka reads none before that one is answered.
QUEUE_BYTES_MAX = 1_048_576
# Small answers are collected until there are this many, or until one is large.
_READY_ANSWERS_MAX = 16
_LARGE_ANSWER_BYTES = 16_384
_AT_ONCE = (bytes, list, NoneType)  # an answer that is there, and not an awaitable for it


class Dispatch(Protocol):
    """Answers a frame of a client at a host, at once or by an awaitable if the answer comes later.

    `arrived_ns` is the monotonic time of its arrival if it has waited behind others, else 0.
    """

    def __call__(
        self, frame: bytes, client_host: str, arrived_ns: int = 0, /
    ) -> Answer | Awaitable[Answer]: ...


class Disconnect(Exception):
    """Asks to close the connection, where no response can say that something is wrong."""


class ClientConnection(asyncio.Protocol):
    """Runs one client's requests through `dispatch`, one after the other."""

    def __init__(
        self,
        dispatch: Dispatch,
        frame_bytes_max: int,
        queue_max: int,
        connections: ConnectionRegistry,
        request_memory: RequestMemory,
        clock: Clock,
    ) -> None:
        self._dispatch = dispatch
        self._frames = FrameReader(frame_bytes_max)
        self._queue: deque[tuple[bytes, int]] = deque()  # with the times of their arrival in ns
        self._queue_max = queue_max
        self._queue_bytes = 0
        self._connections = connections
        self._request_memory = request_memory
        self._clock = clock
        self._transport: asyncio.Transport
        self.host = ""
        self._port = 0
        self.last_active_ms = clock.monotonic_ms()
        self._pending_answer: asyncio.Future[Answer] | None = None
        self._ready_answers: list[bytes] = []
        self._outgoing = SendBuffer()
        self._can_write = True
        self._unsent_bytes = 0
        """The bytes that the transport was still to send when it was last looked at."""
        self._is_reading = True

    @property
    def is_waiting(self) -> bool:
        """Return whether a request of this client is still to be answered."""
        return self._pending_answer is not None

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._transport.set_write_buffer_limits(high=CHUNK_BYTES)
        self.host, self._port = (transport.get_extra_info("peername") or ("", 0))[:2]
        if not self._connections.try_add(self):
            self._close_with_error(Disconnect("too many connections"), is_counted=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove_connection(self)
        self._drop_queue()
        self._request_memory.release_reader(self)
        if self._pending_answer is not None:
            self._pending_answer.cancel()

    def data_received(self, data: bytes) -> None:
        self.last_active_ms = self._clock.monotonic_ms()
        if self._is_idle():
            single_frame = self._frames.try_read_single_frame(data)
            if single_frame is not None:  # of a client that waits for each answer, as most do
                self._dispatch_and_answer(single_frame)
                self._write_ready_answers()
                return
        try:
            arrived_ns = self._clock.monotonic_ns()
            for frame in self._frames.read_frames(data):
                self._queue.append((frame, arrived_ns))
                self._queue_bytes += len(frame)
        except MalformedFrame as error:
            self._close_with_error(error)
            return
        self._answer_queued_requests()

    def pause_writing(self) -> None:
        self._unsent_bytes = self._transport.get_write_buffer_size()
        self._can_write = False

    def resume_writing(self) -> None:
        self.last_active_ms = self._clock.monotonic_ms()
        self._can_write = True
        self._send_while_writable()
        self._answer_queued_requests()

    def resume_reading(self) -> None:
        """Read from the client again, unless its own limits forbid it."""
        self._throttle_reading()

    def close_if_stalled(self, silent_since_ms: int) -> None:
        """Abort the connection if its client has neither sent nor read anything since then.

        One that awaits an answer is left alone. Other clients wait for the memory that its requests
        hold.
        """
        if not self._can_write:
            self._note_bytes_read_by_client()
        if self.last_active_ms >= silent_since_ms or self.is_waiting:
            return
        log.warning(
            "closing the connection of %s:%s: %s, and other clients wait for the memory of its "
            "requests, %d bytes (queued.max.request.bytes)",
            self.host,
            self._port,
            "it sends nothing more of a request" if self._can_write else "it reads no answers",
            self._frames.held_bytes + self._queue_bytes,
        )
        self._connections.ended_counts["stalled"] += 1
        self.abort()

    def _note_bytes_read_by_client(self) -> None:
        """Take a client that has read a part of what is written to it for an active one."""
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes < self._unsent_bytes:
            self.last_active_ms = self._clock.monotonic_ms()
        self._unsent_bytes = unsent_bytes

    # Called by the server

    def close(self) -> None:
        """Close the connection once what was written has been sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once and drop what wasn't sent."""
        self._transport.abort()

    # Requests, one after the other

    def _is_idle(self) -> bool:
        """Return whether a request that comes now is handled at once, as nothing is before it."""
        return (
            self._pending_answer is None
            and not self._queue
            and self._can_write
            and self._is_reading
            and not self._outgoing
            and not self._transport.is_closing()
        )

    def _answer_queued_requests(self) -> None:
        while (
            self._queue
            and self._pending_answer is None
            and self._can_write
            and not self._outgoing
            and not self._transport.is_closing()
        ):
            frame, arrived_ns = self._queue.popleft()
            self._queue_bytes -= len(frame)
            self._dispatch_and_answer(frame, arrived_ns)
        self._write_ready_answers()
        self._throttle_reading()

    def _throttle_reading(self) -> None:
        has_room = self._request_memory.set_held_bytes(
            self, self._frames.held_bytes + self._queue_bytes
        )
        wanted = (
            has_room and len(self._queue) < self._queue_max and self._queue_bytes < QUEUE_BYTES_MAX
        )
        if wanted != self._is_reading and not self._transport.is_closing():
            self._is_reading = wanted
            if wanted:
                self.last_active_ms = self._clock.monotonic_ms()  # it could send nothing until now
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _dispatch_and_answer(self, frame: bytes, arrived_ns: int = 0) -> None:
        try:
            answer = self._dispatch(frame, self.host, arrived_ns)
        except (MalformedRequest, Disconnect) as error:
            self._close_with_error(error)
            return
        if isinstance(answer, _AT_ONCE):
            self._write_or_collect_answer(answer)
        else:
            self._pending_answer = asyncio.ensure_future(answer)
            self._pending_answer.add_done_callback(self._write_late_answer)

    def _write_late_answer(self, future: asyncio.Future[Answer]) -> None:
        self._pending_answer = None
        if future.cancelled() or self._transport.is_closing():
            return
        error = future.exception()
        if error is not None:
            self._close_with_error(error)
            return
        self._write_or_collect_answer(future.result())
        self._answer_queued_requests()

    def _write_or_collect_answer(self, answer: Answer) -> None:
        """Send an answer, or keep a small one for `_write_ready_answers`.

        A system call for each of many small answers would cost as much as creating them.
        """
        if isinstance(answer, bytes):
            self._ready_answers.append(answer)
            if len(self._ready_answers) >= _READY_ANSWERS_MAX or len(answer) >= _LARGE_ANSWER_BYTES:
                self._write_ready_answers()
        elif answer is not None:
            self._write_ready_answers()
            self._outgoing.add_pieces(answer)
            self._send_while_writable()

    def _write_ready_answers(self) -> None:
        answers = self._ready_answers
        if answers:
            self._transport.write(answers[0] if len(answers) == 1 else b"".join(answers))
            answers.clear()

    def _send_while_writable(self) -> None:
        """Send as much of the answer as the transport has room for."""
        while self._outgoing and self._can_write and not self._transport.is_closing():
            try:
                self._transport.write(self._outgoing.pop_next_chunk())
            except OSError as error:
                self._close_with_error(error)

    def _close_with_error(self, error: BaseException, *, is_counted: bool = False) -> None:
        if not is_counted:
            self._connections.ended_counts["error"] += 1
        log.warning("closing the connection of %s:%s: %s", self.host, self._port, error)
        self._write_ready_answers()
        self._drop_queue()
        self._transport.close()

    def _drop_queue(self) -> None:
        self._outgoing.drop_pieces()
        self._queue.clear()
        self._queue_bytes = 0
