"""Let requests in that carry the token, as many at a time as there is room for."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import TypeAlias

import httptools
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.queries.http_parameters import is_local_scope
from streams.queries.http_problems import create_problem
from streams.queries.prompt_responses import (
    FindPromptResponse,
    StartLookUp,
    find_no_response,
)
from streams.runtime.threads.query_measurements import QueryMeasurements

REQUESTS_MAX = 128
"""The requests of each scope that wait for their answers at a time.

Each holds at most a page of rows in memory. Were they counted together, workers whose requests all
ask each other would refuse what they ask.
"""

BEGAN_S = "millrace.began_s"
"""Names the monotonic time in s in a scope at which its request came, if it was routed before."""


OnRoutedResponse: TypeAlias = Callable[[bytes | None, bool], None]
"""Takes what follows a status line, or None if `served` has to make the response, and whether the
connection is to end with it."""

StartRoutedResponse: TypeAlias = Callable[[OnRoutedResponse], bool]
"""Lets another worker be asked for a response; returns whether it was, so that one comes later."""


class RequestGate:
    """Passes on requests to `served`; with a `token` those that carry it as bearer.

    It measures all requests, those that it refuses too. Where the worker `is_stopping`, responses
    end their connections.
    """

    def __init__(
        self,
        served: ASGIApp,
        token: str,
        measurements: QueryMeasurements,
        is_stopping: Callable[[], bool],
        find_prompt_response: FindPromptResponse = find_no_response,
    ) -> None:
        self._find_prompt_response = find_prompt_response
        self._is_stopping = is_stopping
        self._served = served
        self._token = token.encode()
        self._measurements = measurements
        self._running = dict.fromkeys((False, True), 0)

    def create_prompt_response(
        self, target: bytes, headers: Iterable[tuple[bytes, bytes]]
    ) -> bytes | StartRoutedResponse | None:
        """Return what follows the status line of the response to GET, which is 200.

        It is that of `served`, without its task and what goes with it; where another worker has to
        be asked, what does so. None for all that is refused or wrong, or can't be known at once:
        `served` tells what is to be told.
        """
        began_s = time.monotonic()
        if self._is_stopping() or (self._token and not self._is_authorized(headers)):
            return None
        try:
            url = httptools.parse_url(target)
            path, query = url.path, url.query or b""
            response = self._find_prompt_response(path, query)
            # What is known at once takes no place of those that wait, for a worker that is gone.
            if not isinstance(response, bytes) and not self._has_room(
                is_local=is_local_scope(query)
            ):
                return None
        except Exception:  # whose response, and line in the log, are those of `served`
            return None
        if isinstance(response, bytes):
            self._measurements.observe_request(HTTPStatus.OK, time.monotonic() - began_s)
        elif response is not None:
            return partial(self._start_look_up, began_s, response)
        return response

    def _start_look_up(
        self, began_s: float, start_look_up: StartLookUp, on_response: OnRoutedResponse
    ) -> bool:
        """Let another worker be asked, and measure its response; return whether it was asked."""

        def take_response(response: bytes | None) -> None:
            self._running[False] -= 1
            self._measurements.running -= 1
            if response is not None:
                self._measurements.observe_request(HTTPStatus.OK, time.monotonic() - began_s)
            on_response(response, self._is_stopping())

        try:
            is_asked = start_look_up(take_response)
        except Exception:  # whose response, and line in the log, are those of `served`
            return False
        self._running[False] += is_asked
        self._measurements.running += is_asked
        return is_asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served, not {scope['type']}")
        began_s, status = scope.get(BEGAN_S) or time.monotonic(), 0

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._is_stopping():
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        is_local = is_local_scope(scope["query_string"])
        try:
            if (refusal := self._refuse_request(scope, is_local=is_local)) is not None:
                await refusal(scope, receive, note_status)
                return
            self._running[is_local] += 1
            self._measurements.running += 1
            try:
                await self._served(scope, receive, note_status)
            finally:
                self._running[is_local] -= 1
                self._measurements.running -= 1
        finally:
            self._measurements.observe_request(status, time.monotonic() - began_s)

    def _refuse_request(self, scope: Scope, *, is_local: bool) -> Response | None:
        """Return the refusal of a request, if it has no token or there is no room for it."""
        if self._token and not self._is_authorized(scope["headers"]):
            return create_problem(
                HTTPStatus.UNAUTHORIZED,
                "give the query_token of the application: Authorization: Bearer ...",
                {"WWW-Authenticate": "Bearer"},
            )
        if not self._has_room(is_local=is_local):
            self._measurements.refused["requests"] += 1
            return create_problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this worker answers {REQUESTS_MAX} other requests: try again later",
            )
        return None

    def _has_room(self, *, is_local: bool) -> bool:
        """Return whether one more request of a scope may wait for its response."""
        return self._running[is_local] < REQUESTS_MAX

    def _is_authorized(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether the first such header carries the token.

        How long that takes does not depend on the token.
        """
        header = next((value for name, value in headers if name == b"authorization"), b"")
        scheme, _, given = header.partition(b" ")
        is_token = hmac.compare_digest(given, self._token)
        return is_token and scheme.lower() == b"bearer"
