"""Answer requests for the rows of a store without the framework, which answers all others.

Such requests come by the thousand, and the framework's way from one of its layers to the next took
a fifth of what a look-up takes of the thread that serves (`make bench-query-costs`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from streams.queries.http_problems import find_exception_handler, is_fault

ReadStore: TypeAlias = Callable[[Scope], Awaitable[Response]]

_PREFIX = "/stores/"
_METHODS = ("GET", "HEAD")


class StoreRoute:
    """Answers requests for /stores/NAME and /stores/NAME/KEY by `read_store`.

    `others` is the framework's application. A key is all that is behind the store's name.
    """

    def __init__(self, read_store: ReadStore, others: ASGIApp) -> None:
        self._read_store = read_store
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        path = scope["path"]
        name = path[len(_PREFIX) : len(_PREFIX) + 1]
        # A key may be empty, and a store's name may not.
        if not path.startswith(_PREFIX) or name in ("", "/"):
            await self._others(scope, receive, send)
            return
        try:
            if scope["method"] not in _METHODS:
                raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED)
            response = await self._read_store(scope)
        except Exception as error:
            problem = await find_exception_handler(error)(Request(scope), error)
            await problem(scope, receive, send)
            if is_fault(error):
                raise  # so that the server logs it
            return
        await response(scope, receive, send)
