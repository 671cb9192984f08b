"""Make the response to a look-up whose answer is known at once, without a task and the framework.

A response is byte for byte the one that `http_api` makes, which is given all other requests: those
whose answer has to be waited for, and those that are wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from streams.queries.endpoint_client import MORE_HEADER
from streams.queries.http_texts import RowTexts
from streams.queries.openapi import ROWS_TYPE
from streams.queries.prompt_reads import PromptReads
from streams.queries.prompt_routes import PromptRoutes
from streams.queries.request_terms import describe_answer
from streams.queries.routed_reads import RoutedReads
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead
from streams.queries.store_requests import StoreRequest, parse_request

OnResponse: TypeAlias = Callable[[bytes | None], None]
"""Takes what follows a status line, or None if the response has to be sought."""

StartLookUp: TypeAlias = Callable[[OnResponse], bool]
"""Asks another worker for a row; returns whether it was asked, so that a response comes later."""

FindPromptResponse: TypeAlias = Callable[[bytes, bytes], bytes | StartLookUp | None]
"""Returns what follows the status line of the response to a path and its query, or what asks for
it, or None."""

_PREFIX = b"/stores/"
_FORMS_MAX = 1_024
_FORM_BYTES_MAX = 256
"""The stores and parameters that are remembered: those of a window are new at each start. Long ones
are not, of which each may take as much as a head of HTTP."""
_ALWAYS_NEW = b"at-least"
"""The parameter that is another in each request, as it is the position of an answer."""


def find_no_response(path: bytes, query: bytes) -> None:
    """Let each request be answered by `http_api`."""


class PromptResponses:
    """Answers look-ups in `reads` that need nothing to be waited for."""

    def __init__(self, reads: RoutedReads) -> None:
        self._local = reads.local
        self._prompt_reads = PromptReads(reads)
        self._prompt_routes = PromptRoutes(reads, self._prompt_reads)
        self._forms: dict[tuple[bytes, bytes], StoreRequest] = {}
        """This holds what was asked for last, by the store and the parameters in a URL."""

    def find_prompt_response(self, path: bytes, query: bytes) -> bytes | StartLookUp | None:
        """Return the headers and the body of the response to a look-up that has an answer here.

        For another look-up of one row it is what asks another worker for it, and None for every
        other request. Raises ValueError and what else is wrong with a request.
        """
        if not path.startswith(_PREFIX):
            return None
        name, separator, key = path[len(_PREFIX) :].partition(b"/")
        if not separator or not name or b"%" in name:
            return None
        key_text = (unquote_to_bytes(key) if b"%" in key else key).decode()
        if (form := self._forms.get((name, query))) is None:
            form = self._parse_form(name, key_text, query)
        terms, read, texts, _ = form
        if texts.row_format != "json":
            key_text = key_text.removeprefix("=")
        read = read.replace_key(texts.parse_key(key_text))
        answer = self._prompt_reads.find_prompt_answer(terms, read)
        if answer is not None:
            return _format_response(answer, texts)
        return None if terms.is_local else partial(self._start_look_up, form, read)

    def _start_look_up(self, form: StoreRequest, read: StoreRead, on_response: OnResponse) -> bool:
        """Ask another worker for the row of a look-up; return whether it was asked."""

        def take_answer(answer: StoreAnswer | None) -> None:
            response = None
            if answer is not None:
                with suppress(Exception):  # which whoever asks again meets, and tells
                    response = _format_response(answer, form.texts)
            on_response(response)

        return self._prompt_routes.start_routed_look_up(form.terms, read, take_answer)

    def _parse_form(self, name: bytes, key_text: str, query: bytes) -> StoreRequest:
        """Return what a store's name and parameters ask for, with any key. Raises ConfigError."""
        spec, _ = self._local.find_store(name.decode())
        form = parse_request(spec, key_text, query)
        if len(query) > _FORM_BYTES_MAX or _ALWAYS_NEW in query:
            return form
        if len(self._forms) >= _FORMS_MAX:
            self._forms.clear()
        self._forms[name, query] = form._replace(read=form.read.replace_key(None))
        return form


def _format_response(answer: StoreAnswer, texts: RowTexts) -> bytes:
    """Return the headers and the body of a response. Raises ValueError."""
    body = b"".join(map(texts.encode_row, answer.rows))
    headers = describe_answer(answer)
    headers[MORE_HEADER] = "1" if answer.has_more else "0"
    lines = "".join([f"{name.lower()}: {value}\r\n" for name, value in headers.items()])
    end = f"content-length: {len(body)}\r\ncontent-type: {ROWS_TYPE}\r\n\r\n"
    return (lines + end).encode("latin-1") + body
