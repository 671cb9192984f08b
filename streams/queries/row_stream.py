"""Send a range page by page, as the client takes it: neither rows nor a thread wait for a client.

A page is read when the one before has left. What goes wrong behind the first page can't be told by
a status any more, so that the connection ends before the response does, and the log says why.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streams.errors import UserError
from streams.queries.store_answers import StoreAnswer

log = logging.getLogger(__name__)

ReadNextPage = Callable[[StoreAnswer], Awaitable[tuple[StoreAnswer, bytes]]]
"""Reads the rows behind those of an answer, and their lines."""


class RowStream(Response):
    """Sends the lines of a first page, `body`, and then those of the pages behind it."""

    def __init__(
        self,
        body: bytes,
        answer: StoreAnswer,
        read_next_page: ReadNextPage,
        *,
        headers: Mapping[str, str],
        media_type: str,
    ) -> None:
        super().__init__(body, headers=headers, media_type=media_type)
        if answer.has_more:
            del self.headers["content-length"]
        self._answer = answer
        self._read_next_page = read_next_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response (ASGI), until the client has it or has gone."""
        if not self._answer.has_more or scope["method"] == "HEAD":
            await super().__call__(scope, receive, send)
            return
        async with anyio.create_task_group() as tasks:

            async def end_with_client() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(end_with_client)
            await self._send_pages(scope, send)
            tasks.cancel_scope.cancel()

    async def _send_pages(self, scope: Scope, send: Send) -> None:
        """Send all pages; nothing after one that can't be read, so that the server disconnects."""
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        answer, body = self._answer, bytes(self.body)
        while answer.has_more:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            try:
                answer, body = await self._read_next_page(answer)
            except (UserError, ValueError) as error:
                log.warning("%s: the response ends early: %s", scope["path"], error)
                return
        await send({"type": "http.response.body", "body": body, "more_body": False})
