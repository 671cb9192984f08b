"""Answer GET requests for stores: which there are, one key, and ranges of keys, as lines of JSON.

    GET /stores                 the stores, with the workers that have each partition
    GET /stores/NAME            a range: from, to, after, reverse, from-ms, to-ms, limit
    GET /stores/NAME/KEY        one key: from-ms and to-ms of windows, as-of-ms of versions

Everywhere: `format` (json, or bytes: base64 of what the serdes make), `scope` (cluster, or local
for the partitions of this worker alone), `at-least` (a position to wait for) and `wait-ms`.
Position, partitions and age of an answer are in its headers; errors are problem documents
(RFC 9457).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streams.errors import ConfigError, SerdeError, StoreUnavailable
from streams.graph.nodes import StoreKind, StoreSpec
from streams.queries.committed_reads import Position
from streams.queries.endpoint_client import (
    AGE_HEADER,
    MORE_HEADER,
    PARTITIONS_HEADER,
    POSITION_HEADER,
    WAIT_MS_MAX,
)
from streams.queries.http_texts import (
    RowFormat,
    encode_row,
    format_position,
    parse_key,
    parse_position,
)
from streams.queries.local_stores import StoreAnswer
from streams.queries.routed_reads import RoutedReads
from streams.queries.store_reads import ROWS_MAX, StoreRead

_WAIT_MS = 2_000
_RANGE_PARAMETERS = ("limit", "reverse", "from", "to", "after", "from-ms", "to-ms", "as-of-ms")
_PARAMETERS = frozenset(("format", "scope", "at-least", "wait-ms", *_RANGE_PARAMETERS))


class _Problem(NamedTuple):
    """Represents an error that a client is told: an HTTP status, a type and what to do."""

    status: int
    title: str
    detail: str


class _StoreRequest(NamedTuple):
    """Holds what a request asks for."""

    spec: StoreSpec
    read: StoreRead
    row_format: RowFormat
    is_local: bool
    at_least: Position
    wait_s: float


def create_http_api(reads: RoutedReads, token: str) -> Starlette:
    """Create the ASGI application; with a `token` each request has to carry it as bearer."""
    answer = partial(_answer_request, token.encode())
    list_stores = partial(answer, lambda request: _list_stores(reads))
    read_store = partial(answer, lambda request: _read_store(reads, request))
    return Starlette(
        routes=[
            Route("/stores", list_stores, methods=["GET"]),
            Route("/stores/{name}", read_store, methods=["GET"]),
            Route("/stores/{name}/{key:path}", read_store, methods=["GET"]),
        ]
    )


async def _answer_request(
    token: bytes, respond: Callable[[Request], Response | _Problem], request: Request
) -> Response:
    """Return the response to a request, or the problem that keeps it from one."""
    given = request.headers.get("authorization", "").encode()
    if token and not hmac.compare_digest(given, b"Bearer " + token):
        problem = _Problem(401, "Not authorized", "give the query_token: Authorization: Bearer ...")
        return _to_response(problem, {"WWW-Authenticate": "Bearer"})
    try:
        response = await run_in_threadpool(respond, request)
    except StoreUnavailable as error:
        return _to_response(_Problem(503, "Not available now", str(error)), {"Retry-After": "1"})
    except (ConfigError, SerdeError, ValueError) as error:
        response = _Problem(400, "Bad request", str(error))
    return _to_response(response) if isinstance(response, _Problem) else response


def _to_response(problem: _Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem document."""
    body = orjson.dumps({"type": "about:blank", **problem._asdict()})
    return Response(body, problem.status, headers, "application/problem+json")


def _list_stores(reads: RoutedReads) -> Response:
    """Return the stores of the application, and where each partition is."""
    stores = []
    for name in reads.local.store_names:
        spec, _ = reads.local.find_store(name)
        if spec.kind is StoreKind.BUFFER:
            continue
        hosts = [
            {"address": each.address, "partition": each.partition, "role": each.role}
            for each in reads.local.list_hosts(name)
        ]
        serdes = {"key_serde": spec.key.name, "value_serde": spec.value.name}
        stores.append({"name": name, "kind": spec.kind.name.lower(), **serdes, "hosts": hosts})
    return Response(orjson.dumps({"stores": stores}), media_type="application/json")


def _read_store(reads: RoutedReads, request: Request) -> Response | _Problem:
    """Return the rows that a request asks for."""
    try:
        spec, _ = reads.local.find_store(request.path_params["name"])
    except ConfigError as error:
        return _Problem(404, "No such store", str(error))
    wanted = _parse_request(spec, request)
    name, read, at_least = spec.name, wanted.read, wanted.at_least
    if wanted.is_local:
        answer = reads.local.read(name, read, at_least=at_least, wait_s=wanted.wait_s)
    else:
        answer = reads.read(name, read, at_least=at_least, timeout_s=wanted.wait_s)
    if read.is_lookup and not answer.rows and not wanted.is_local:
        return _Problem(404, "No such key", f"store {name!r} has no value of this key")
    return _encode_answer(spec, answer, wanted.row_format)


def _encode_answer(spec: StoreSpec, answer: StoreAnswer, row_format: RowFormat) -> Response:
    """Return the response with the rows, and what is known of them in its headers."""
    body = b"".join(encode_row(spec.key, spec.value, row, row_format) for row in answer.rows)
    headers = {
        POSITION_HEADER: format_position(answer.position),
        PARTITIONS_HEADER: ",".join(map(str, sorted(answer.partitions))),
        AGE_HEADER: str(round(answer.age_s * 1000) + 1),
        MORE_HEADER: "1" if answer.has_more else "0",
    }
    return Response(body, headers=headers, media_type="application/x-ndjson")


def _parse_request(spec: StoreSpec, request: Request) -> _StoreRequest:
    """Return what a request asks for. Raises ValueError naming the parameter that is wrong."""
    given = dict(request.query_params)
    if unknown := sorted(given.keys() - _PARAMETERS):
        raise ValueError(
            f"unknown parameters {', '.join(unknown)}; there are {sorted(_PARAMETERS)}"
        )
    row_format = _parse_choice(given, "format", ("json", "bytes"))
    key: Any = None
    if is_lookup := "key" in request.path_params:
        text = request.path_params["key"]
        key = parse_key(
            spec.key, text.removeprefix("=") if row_format == "bytes" else text, row_format
        )
    first, last, after = (
        parse_key(spec.key, given[name], row_format) if name in given else None
        for name in ("from", "to", "after")
    )
    read = StoreRead(
        is_lookup=is_lookup,
        key=key,
        key_from=first,
        key_to=last,
        after=after,
        from_ms=_parse_number(given, "from-ms"),
        to_ms=_parse_number(given, "to-ms"),
        as_of_ms=_parse_number(given, "as-of-ms"),
        is_reverse=_parse_choice(given, "reverse", ("0", "1")) == "1",
        limit=_parse_number({"limit": str(ROWS_MAX), **given}, "limit") or 0,
    )
    wait_ms = _parse_number(given, "wait-ms", most=WAIT_MS_MAX)
    return _StoreRequest(
        spec,
        read,
        row_format,
        _parse_choice(given, "scope", ("cluster", "local")) == "local",
        parse_position(given.get("at-least", "")),
        (_WAIT_MS if wait_ms is None else wait_ms) / 1000,
    )


def _parse_choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> Any:
    """Return one of the choices, the first if none is given. Raises ValueError."""
    value = given.get(name, choices[0])
    if value not in choices:
        raise ValueError(f"{name}={value!r} is none of {', '.join(choices)}")
    return value


def _parse_number(given: Mapping[str, str], name: str, *, most: int = 2**62) -> int | None:
    """Return a number from 0 to `most`, None if it is not given. Raises ValueError."""
    if (text := given.get(name)) is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise ValueError(f"{name}={text!r} is no number from 0 to {most}")
    return int(text)
