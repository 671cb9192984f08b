"""Bound what one connection may take: the time in which a request arrives, and an answer leaves.

    what a client does                            what becomes of it
    connects and sends no whole request           disconnected after ARRIVAL_S
    sends a request byte by byte                  the same
    has its answer, sends a part of another one   the same, from the first byte on
    takes nothing of what it has asked for        disconnected after STALL_S
    connects where CONNECTIONS_MAX are open       disconnected, and counted
    still takes an answer when the worker stops   disconnected after SHUTDOWN_S
    sends what is no HTTP                         400, by uvicorn
    sends a head of more than HEAD_SIZE_MAX       400

A client that has sent one request may keep its connection for the next one for as long as uvicorn's
keep-alive allows. Without these a few clients that are slow, or mean to be, would take all files
that the worker may open, those of its stores too.

A request that can be answered at once is, where its head has been parsed: without a task, and the
thread need not get Python's interpreter again for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from streams.queries.request_gate import BEGAN_S, StartRoutedResponse
from streams.runtime.threads.query_measurements import QueryMeasurements

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

ARRIVAL_S = 10.0
STALL_S = 30.0
SHUTDOWN_S = 1.0
CONNECTIONS_MAX = 512
HEAD_SIZE_MAX = 65_536
"""The bytes that the line and the headers of a request may have: httptools has no bound."""

Header: TypeAlias = tuple[bytes, bytes]
CreatePromptResponse: TypeAlias = Callable[
    [bytes, Iterable[Header]], bytes | StartRoutedResponse | None
]
"""Returns what follows the status line of the response to GET, by its target and headers, or what
has it made without a task, or None where it can't be known at once, or is another one than 200."""

_END_OF_HEAD = b"\r\n\r\n"
_SPECIAL_HEADERS = frozenset((b"content-length", b"transfer-encoding", b"expect", b"upgrade"))
"""The headers of requests that have more to them than a head."""

_UVICORN_LOG = logging.getLogger(f"{__name__}.uvicorn")
# What clients get wrong would fill the log, and why a response ends early is told by `row_stream`.
_UVICORN_LOG.setLevel(logging.ERROR)
_UVICORN_LOG.addFilter(lambda record: "without completing response" not in record.getMessage())


class HttpConnection(HttpToolsProtocol):
    """Serves one connection as uvicorn does, within bounds."""

    arrival_s = ARRIVAL_S
    stall_s = STALL_S
    connections_max = CONNECTIONS_MAX

    def __init__(
        self,
        *arguments: Any,
        measurements: QueryMeasurements | None = None,
        create_prompt_response: CreatePromptResponse | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._create_prompt_response = create_prompt_response
        self._is_first_of_data = False
        """True if no request was answered at once yet of those that have come together. The others
        have tasks: a client that sends many keeps nobody else waiting."""
        self._start_routed: StartRoutedResponse | None = None
        """This holds what can have the request that is parsed answered without a task."""
        self._is_answered = False
        """True if the request that is parsed was answered at once."""
        self._measurements = measurements or QueryMeasurements()
        self.logger = _UVICORN_LOG
        self._head_size = 0
        """This counts the bytes of a head that is not whole, and those between the parts of a body,
        but for what has come together with the end of the head or of the request before."""
        self._arrival: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self.connections_max:
            self._measurements.refused["connections"] += 1
            transport.abort()
            return
        self._limit_arrival_time()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        self._head_size += len(data)
        self._is_first_of_data = True
        super().data_received(data)
        if self._head_size > HEAD_SIZE_MAX and not self.transport.is_closing():
            self.send_400_response("Headers are too long.")
        self._limit_arrival_time()

    def on_headers_complete(self) -> None:
        """Answer a request, whose body nobody waits for. Raises ValueError for too long a head."""
        self._head_size = 0
        if self._measure_head_bytes() > HEAD_SIZE_MAX:
            raise ValueError("the head is too long")  # which is a 400
        if self._may_answer_at_once():
            assert self._create_prompt_response is not None
            found = self._create_prompt_response(self.url, self.headers)
            if isinstance(found, bytes):
                self._is_first_of_data, self._is_answered = False, True
                self._cancel_arrival_limit()
                self._write_response(found)
                return
            self._start_routed = found
        self._unset_keepalive_if_required()  # which the answer before may have begun, just now
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        if self._is_answered:
            self._is_answered = False
        else:
            super().on_message_complete()
        self._head_size = 0

    def _may_answer_at_once(self) -> bool:
        """Return whether a response may be written now, and the connection be kept behind it."""
        parser = self.parser
        return (
            self._create_prompt_response is not None
            and self._is_first_of_data
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and not self.transport.is_closing()
            and parser.get_method() == b"GET"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not any(name in _SPECIAL_HEADERS for name, _ in self.headers)
        )

    def _write_response(self, response: bytes, *, is_last: bool = False) -> None:
        """Write a response behind its status line; wait for a request unless it `is_last`."""
        given = [b"%b: %b\r\n" % header for header in self.server_state.default_headers]
        self.transport.write(b"".join((STATUS_LINE[200], *given, response)))
        if is_last:
            self.transport.close()
        self.on_response_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Begin to answer a request: by a task, unless another worker can be asked without one."""
        start_routed, self._start_routed = self._start_routed, None
        finish = partial(self._finish_routed, cycle, app, time.monotonic())
        if start_routed is None or not start_routed(finish):
            super()._start_asgi_task(cycle, app)

    def _finish_routed(
        self,
        cycle: RequestResponseCycle,
        app: ASGI3Application,
        began_s: float,
        response: bytes | None,
        is_last: bool,
    ) -> None:
        """Answer a request by the response of another worker, or by a task if there is none."""
        if cycle.disconnected or self.transport.is_closing():
            return
        if response is None:
            cast("dict[str, Any]", cycle.scope)[BEGAN_S] = began_s
            super()._start_asgi_task(cycle, app)
            return
        cycle.response_started = cycle.response_complete = True
        is_last = is_last or not cycle.keep_alive
        if is_last:
            head, _, body = response.partition(_END_OF_HEAD)
            response = b"%b\r\nconnection: close%b%b" % (head, _END_OF_HEAD, body)
        self._write_response(response, is_last=is_last)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        super().on_body(body)
        self._head_size = max(self._head_size - len(body), 0)

    def _measure_head_bytes(self) -> int:
        """Return the bytes of a whole head as it is usually written, with its last, empty line."""
        line = len(self.parser.get_method()) + len(self.url) + len(b"  HTTP/1.1\r\n")
        return line + sum(len(n) + len(v) + len(b": \r\n") for n, v in self.headers) + len(b"\r\n")

    def shutdown(self) -> None:
        """End the connection with its response, or soon."""
        super().shutdown()
        self.loop.call_later(SHUTDOWN_S, self.transport.abort)

    def pause_writing(self) -> None:
        """Wait for the client to take what was sent, within bounds."""
        super().pause_writing()
        self._stall = self.loop.call_later(self.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on to send."""
        super().resume_writing()
        self._cancel_stall_limit()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._cancel_arrival_limit()
        self._cancel_stall_limit()

    def _limit_arrival_time(self) -> None:
        """Bound the time until a response begins, wherever nothing else bounds it.

        While one runs nothing has to arrive; a part of the next request may. Behind it uvicorn's
        keep-alive bounds the time, up to the first byte that comes, be it of a blank line or of a
        body that nobody waits for.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_arrival_limit()
        elif (
            self._arrival is None
            and self.timeout_keep_alive_task is None
            and not self.transport.is_closing()
        ):
            self._arrival = self.loop.call_later(self.arrival_s, self.transport.abort)

    def _cancel_arrival_limit(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _cancel_stall_limit(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
