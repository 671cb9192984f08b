"""Tell a client what is wrong with its request, or with the stores, as a problem document.

Problem documents are those of RFC 9457: `title` and `status` say what kind of error it is, `detail`
says what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from streams.errors import ConfigError, QueryFailed, SerdeError, StoreUnavailable

ExceptionHandler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]

PROBLEM_TYPE = "application/problem+json"
RETRY_AFTER_S = 1
"""The seconds after which a request may succeed that was refused by 503."""


NO_SUCH_KEY = "urn:millrace:no-such-key"
"""The type of the problem that a key is nowhere, by which it is told from a store that is not."""

QUERY_FAILED = "urn:millrace:query-failed"
"""The type of the problem that the function of a registered query has raised an error."""


class NotFound(Exception):
    """Reports a store or a key that there is not; `problem_type` tells which.

    `headers` say of a key as of when it is nowhere.
    """

    def __init__(
        self,
        detail: str,
        problem_type: str = "about:blank",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem_type = problem_type
        self.headers = headers


def create_problem(
    status: HTTPStatus,
    detail: str,
    headers: Mapping[str, str] | None = None,
    problem_type: str = "about:blank",
) -> Response:
    """Return the response with a problem document."""
    fields = {"type": problem_type, "title": status.phrase, "status": status, "detail": detail}
    given = {"Cache-Control": "no-store", **(headers or {})}
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        given["Retry-After"] = str(RETRY_AFTER_S)
    return Response(orjson.dumps(fields), status, given, PROBLEM_TYPE)


async def _explain_routing(request: Request, error: Exception) -> Response:
    """Return the problem of a path that there is not, or of a method that is not served."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    detail = f"{request.method} {request.url.path!r:.200}: there is no such path"
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.method} is not served: stores are read by GET, and nothing is written"
        return create_problem(status, detail, {"Allow": "GET, HEAD"})
    return create_problem(status, detail)


async def _explain_absence(request: Request, error: Exception) -> Response:
    """Return the problem of a store or a key that there is not."""
    assert isinstance(error, NotFound)
    return create_problem(HTTPStatus.NOT_FOUND, str(error), error.headers, error.problem_type)


async def _explain_mistake(request: Request, error: Exception) -> Response:
    """Return the problem of a request that is wrong."""
    return create_problem(HTTPStatus.BAD_REQUEST, str(error))


async def _explain_unavailability(request: Request, error: Exception) -> Response:
    """Return the problem of a store that can't be read now."""
    return create_problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


async def _explain_failed_query(request: Request, error: Exception) -> Response:
    """Return the problem of a registered query whose function has raised an error."""
    return create_problem(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), problem_type=QUERY_FAILED)


async def _explain_fault(request: Request, error: Exception) -> Response:
    """Return the problem of a mistake in this program, which the log tells."""
    detail = "the request has met an error of the worker, whose log tells it"
    return create_problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail)


EXCEPTION_HANDLERS: dict[Any, ExceptionHandler] = {
    HTTPException: _explain_routing,
    NotFound: _explain_absence,
    StoreUnavailable: _explain_unavailability,
    QueryFailed: _explain_failed_query,
    ConfigError: _explain_mistake,
    SerdeError: _explain_mistake,
    ValueError: _explain_mistake,
    Exception: _explain_fault,
}
"""What becomes of each kind of error; the most special one counts."""


def find_exception_handler(error: Exception) -> ExceptionHandler:
    """Return what makes a problem of an error: that of the most special of its classes."""
    return next(
        EXCEPTION_HANDLERS[each] for each in type(error).__mro__ if each in EXCEPTION_HANDLERS
    )


def is_fault(error: Exception) -> bool:
    """Return whether an error is a mistake in this program, as no other handler takes it."""
    return find_exception_handler(error) is _explain_fault
