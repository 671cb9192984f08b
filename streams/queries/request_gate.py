"""Let requests in that carry the token, as many at a time as there is room for."""

from __future__ import annotations

import hmac
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from streams.queries.http_problems import create_problem

REQUESTS_MAX = 128
"""The requests that are answered at a time: each holds at most a page of rows in memory."""


class RequestGate:
    """Passes on requests to `served`; with a `token` those that carry it as bearer."""

    def __init__(self, served: ASGIApp, token: str) -> None:
        self._served = served
        self._token = token.encode()
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served, not {scope['type']}")
        if self._token and not self._is_authorized(Headers(scope=scope).get("authorization", "")):
            refusal = create_problem(
                HTTPStatus.UNAUTHORIZED,
                "give the query_token of the application: Authorization: Bearer ...",
                {"WWW-Authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
        elif self._count >= REQUESTS_MAX:
            refusal = create_problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this worker answers {REQUESTS_MAX} other requests: try again later",
            )
            await refusal(scope, receive, send)
        else:
            self._count += 1
            try:
                await self._served(scope, receive, send)
            finally:
                self._count -= 1

    def _is_authorized(self, header: str) -> bool:
        """Return whether a header carries the token, in a time that does not depend on it."""
        scheme, _, given = header.partition(" ")
        is_token = hmac.compare_digest(given.encode(), self._token)
        return is_token and scheme.lower() == "bearer"
