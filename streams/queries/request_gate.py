"""Let requests in that carry the token, as many at a time as there is room for."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.queries.http_parameters import is_local_scope
from streams.queries.http_problems import create_problem
from streams.runtime.threads.query_measurements import QueryMeasurements

REQUESTS_MAX = 128
"""The requests of each scope that are answered at a time.

Each holds at most a page of rows in memory. Were they counted together, workers whose requests all
ask each other would refuse what they ask.
"""


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
    ) -> None:
        self._is_stopping = is_stopping
        self._served = served
        self._token = token.encode()
        self._measurements = measurements
        self._running = dict.fromkeys((False, True), 0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served, not {scope['type']}")
        began_s, status = time.monotonic(), 0

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._is_stopping():
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        try:
            await self._answer_request(scope, receive, note_status)
        finally:
            self._measurements.observe_request(status, time.monotonic() - began_s)

    async def _answer_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or refuse it."""
        if self._token and not self._is_authorized(Headers(scope=scope).get("authorization", "")):
            refusal = create_problem(
                HTTPStatus.UNAUTHORIZED,
                "give the query_token of the application: Authorization: Bearer ...",
                {"WWW-Authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
        else:
            await self._answer_if_room(scope, receive, send)

    async def _answer_if_room(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or refuse it if there are as many others of its scope as may be."""
        is_local = is_local_scope(scope["query_string"])
        if self._running[is_local] >= REQUESTS_MAX:
            self._measurements.refused["requests"] += 1
            refusal = create_problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this worker answers {REQUESTS_MAX} other requests: try again later",
            )
            await refusal(scope, receive, send)
            return
        self._running[is_local] += 1
        self._measurements.running += 1
        try:
            await self._served(scope, receive, send)
        finally:
            self._running[is_local] -= 1
            self._measurements.running -= 1

    def _is_authorized(self, header: str) -> bool:
        """Return whether a header carries the token, in a time that does not depend on it."""
        scheme, _, given = header.partition(" ")
        is_token = hmac.compare_digest(given.encode(), self._token)
        return is_token and scheme.lower() == "bearer"
