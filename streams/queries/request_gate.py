"""Let requests in that carry the token, as many at a time as there is room for."""

from __future__ import annotations

import hmac
import time
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.queries.http_problems import create_problem
from streams.runtime.threads.query_measurements import QueryMeasurements

REQUESTS_MAX = 128
"""The requests that are answered at a time: each holds at most a page of rows in memory."""


class RequestGate:
    """Passes on requests to `served`; with a `token` those that carry it as bearer.

    It measures all requests, those that it refuses too.
    """

    def __init__(self, served: ASGIApp, token: str, measurements: QueryMeasurements) -> None:
        self._served = served
        self._token = token.encode()
        self._measurements = measurements

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served, not {scope['type']}")
        began_s, status = time.monotonic(), 0

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
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
        elif self._measurements.running >= REQUESTS_MAX:
            refusal = create_problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this worker answers {REQUESTS_MAX} other requests: try again later",
            )
            await refusal(scope, receive, send)
        else:
            self._measurements.running += 1
            try:
                await self._served(scope, receive, send)
            finally:
                self._measurements.running -= 1

    def _is_authorized(self, header: str) -> bool:
        """Return whether a header carries the token, in a time that does not depend on it."""
        scheme, _, given = header.partition(" ")
        is_token = hmac.compare_digest(given.encode(), self._token)
        return is_token and scheme.lower() == "bearer"
