"""Answer GET requests for stores: which there are, one key, and ranges of keys, as lines of JSON.

    GET /stores                 the stores, with the workers that have each partition
    GET /stores/NAME            a range of keys
    GET /stores/NAME/KEY        one key
    GET /openapi.json           all of this, for programs

`http_parameters` has the parameters, `http_problems` the errors. Position, partitions, age and lag
of an answer are in its headers. A request takes a thread while it reads: those that other workers
send (`scope=local`) have threads of their own, or workers that ask each other could all wait for
each other's threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

import anyio
import orjson
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from streams.errors import ConfigError, StoreUnavailable
from streams.graph.nodes import StoreKind, StoreSpec
from streams.queries.committed_reads import Position
from streams.queries.endpoint_client import (
    AGE_HEADER,
    LAG_HEADER,
    MORE_HEADER,
    PARTITIONS_HEADER,
    POSITION_HEADER,
)
from streams.queries.http_parameters import (
    KEY_PARAMETERS,
    RANGE_PARAMETERS,
    WAIT_MS,
    read_parameters,
    split_store_path,
)
from streams.queries.http_problems import EXCEPTION_HANDLERS, NO_SUCH_KEY, NotFound
from streams.queries.http_texts import (
    RowTexts,
    format_position,
    parse_partitions,
    parse_position,
    parse_stale_bounds,
)
from streams.queries.local_stores import PositionNotReached, StoreAnswer
from streams.queries.openapi import JSON_TYPE, ROWS_TYPE, EndpointDescription, describe_api
from streams.queries.request_gate import RequestGate
from streams.queries.routed_reads import RoutedReads
from streams.queries.row_stream import RowStream
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_reads import ROWS_MAX, StoreRead
from streams.runtime.threads.query_measurements import QueryMeasurements

R = TypeVar("R")

_THREADS_OF_EACH_SCOPE = 16
_PAGE_ROWS = 1_000
"""The rows that a streamed range reads at a time, of one commit of each partition."""
_POSITION_POLL_S = 0.01
_ENDS_WAIT_S = 0.5
"""The seconds for which a read waits for brokers to say how far behind a standby is."""

_ROW = {"$ref": "#/components/schemas/Row"}
_LIST = EndpointDescription(
    "/stores",
    "The stores, with the workers that have each partition.",
    JSON_TYPE,
    {"$ref": "#/components/schemas/Stores"},
)
_RANGE = EndpointDescription(
    "/stores/{name}",
    "A range of keys, in the order of the keys' bytes; windows and sessions by key and start.",
    ROWS_TYPE,
    _ROW,
    RANGE_PARAMETERS,
    (HTTPStatus.NOT_FOUND,),
    has_rows=True,
)
_KEY = EndpointDescription(
    "/stores/{name}/{key}",
    "The value of one key, its windows or its sessions.",
    ROWS_TYPE,
    _ROW,
    KEY_PARAMETERS,
    (HTTPStatus.NOT_FOUND,),
    has_rows=True,
)
_DOCUMENT = EndpointDescription(
    "/openapi.json", "This document.", JSON_TYPE, {"type": "object", "required": ["openapi"]}
)
ENDPOINTS = (_LIST, _RANGE, _KEY, _DOCUMENT)


class _StoreRequest(NamedTuple):
    """Holds what a request asks for."""

    spec: StoreSpec
    read: StoreRead
    texts: RowTexts
    is_local: bool
    is_streamed: bool
    partitions: frozenset[int] | None
    at_least: Position
    stale_ok: StaleBounds | None
    wait_s: float


def create_http_api(
    reads: RoutedReads, token: str, measurements: QueryMeasurements | None = None
) -> ASGIApp:
    """Create the ASGI application; with a `token` each request has to carry it as bearer."""
    names = [spec.name for spec in _list_readable_stores(reads)]
    api = _StoreEndpoints(reads, describe_api(ENDPOINTS, names, has_token=bool(token)))
    routes = [
        (_LIST.path, api.list_stores),
        (_RANGE.path, api.read_store),
        ("/stores/{name}/{key:path}", api.read_store),
        (_DOCUMENT.path, api.send_document),
    ]
    served = Starlette(
        routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in routes],
        exception_handlers=EXCEPTION_HANDLERS,
    )
    # A key may be empty, and a store's name may not: /stores/ is neither a store nor the list.
    served.router.redirect_slashes = False
    return RequestGate(served, token, measurements or QueryMeasurements())


class _StoreEndpoints:
    """Answers the requests of each path."""

    def __init__(self, reads: RoutedReads, document: dict[str, Any]) -> None:
        self._reads = reads
        self._document = orjson.dumps(document)
        self._threads = {
            is_local: anyio.CapacityLimiter(_THREADS_OF_EACH_SCOPE) for is_local in (False, True)
        }

    async def send_document(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        read_parameters(request.scope["query_string"], ())
        return Response(self._document, media_type=JSON_TYPE)

    async def list_stores(self, request: Request) -> Response:
        """Return the stores of the application, and where each partition is."""
        read_parameters(request.scope["query_string"], ())
        stores = []
        for spec in _list_readable_stores(self._reads):
            hosts = [
                {
                    "address": each.address,
                    "partition": each.partition,
                    "role": each.role,
                }
                for each in self._reads.local.list_hosts(spec.name)
            ]
            serdes = {"key_serde": spec.key.name, "value_serde": spec.value.name}
            stores.append(
                {"name": spec.name, "kind": spec.kind.name.lower(), **serdes, "hosts": hosts}
            )
        return Response(orjson.dumps({"stores": stores}), media_type=JSON_TYPE)

    async def read_store(self, request: Request) -> Response:
        """Return the rows that a request asks for."""
        name, key_text = split_store_path(request.scope["raw_path"])
        try:
            spec, _ = self._reads.local.find_store(name)
        except ConfigError as error:
            raise NotFound(str(error)) from error
        wanted = _parse_request(spec, key_text, request.scope["query_string"])
        answer, body = await self._read_page(wanted, wanted.read)
        headers = _describe_answer(answer)
        if wanted.read.is_lookup and not answer.rows and not wanted.is_local:
            raise NotFound(f"store {spec.name!r} has no value of this key", NO_SUCH_KEY, headers)
        if not wanted.is_streamed:
            headers[MORE_HEADER] = "1" if answer.has_more else "0"
            return Response(body, headers=headers, media_type=ROWS_TYPE)
        pages = partial(self._read_next_page, wanted)
        return RowStream(body, answer, pages, headers=headers, media_type=ROWS_TYPE)

    async def _read_next_page(
        self, wanted: _StoreRequest, before: StoreAnswer
    ) -> tuple[StoreAnswer, bytes]:
        """Return the page of a range behind another one."""
        return await self._read_page(wanted, replace(wanted.read, after=before.rows[-1].key))

    async def _read_page(self, wanted: _StoreRequest, read: StoreRead) -> tuple[StoreAnswer, bytes]:
        """Return rows, and their lines. Raises StoreUnavailable, ConfigError, ValueError."""
        name = wanted.spec.name
        terms: Any = {"at_least": wanted.at_least, "stale_ok": wanted.stale_ok}

        def read_rows(wait_s: float) -> tuple[StoreAnswer, bytes]:
            if wanted.is_local:
                answer = self._reads.local.read(
                    name,
                    read,
                    partitions=wanted.partitions,
                    ends_wait_s=min(wait_s, _ENDS_WAIT_S),
                    **terms,
                )
            else:
                answer = self._reads.read(name, read, timeout_s=wait_s, **terms)
            return answer, b"".join(map(wanted.texts.encode_row, answer.rows))

        give_up_at_s = anyio.current_time() + wanted.wait_s
        while True:
            left_s = max(give_up_at_s - anyio.current_time(), 0.0)
            try:
                return await self._run_in_thread(
                    partial(read_rows, left_s), wanted.is_local, left_s
                )
            except PositionNotReached:
                # Without a thread: many may wait.
                is_over = left_s <= _POSITION_POLL_S or self._reads.is_stopping
                if is_over or not wanted.is_local:
                    raise
            await anyio.sleep(_POSITION_POLL_S)

    async def _run_in_thread(self, read: Callable[[], R], is_local: bool, wait_s: float) -> R:
        """Return the result of `read`, on one of the threads for its scope.

        Raises StoreUnavailable if all of them are at work for as long as `wait_s`.
        """
        threads = self._threads[is_local]
        with anyio.move_on_after(max(wait_s, _POSITION_POLL_S)) as waiting:
            await threads.acquire()
        if waiting.cancelled_caught:
            raise StoreUnavailable(
                f"this worker is busy with {_THREADS_OF_EACH_SCOPE} other reads: try again later"
            )
        try:
            return await run_sync(read)
        finally:
            threads.release()


def _list_readable_stores(reads: RoutedReads) -> list[StoreSpec]:
    """Return the stores that may be asked for, sorted: a suppression's buffer is not read."""
    specs = [reads.local.find_store(name)[0] for name in reads.local.store_names]
    return [spec for spec in specs if spec.kind is not StoreKind.BUFFER]


def _describe_answer(answer: StoreAnswer) -> dict[str, str]:
    """Return the headers that say as of when an answer is, and of which partitions."""
    headers = {
        POSITION_HEADER: format_position(answer.position),
        PARTITIONS_HEADER: ",".join(map(str, sorted(answer.partitions))),
        AGE_HEADER: str(round(answer.age_s * 1000) + 1),
    }
    if answer.lag is not None:
        headers[LAG_HEADER] = str(answer.lag)
    return headers


def _parse_request(spec: StoreSpec, key_text: str | None, query: bytes) -> _StoreRequest:
    """Return what a request asks for. Raises ValueError naming the parameter that is wrong."""
    is_lookup = key_text is not None
    given = read_parameters(query, KEY_PARAMETERS if is_lookup else RANGE_PARAMETERS)
    row_format = given.get("format", "json")
    texts = RowTexts.of_store(spec, row_format, given.get("key-serde"))
    key = None
    if key_text is not None:
        # A client that can't write an empty part of a path puts this before the bytes.
        key = texts.parse_key(key_text if row_format == "json" else key_text.removeprefix("="))
    is_streamed = not is_lookup and "limit" not in given and spec.kind is StoreKind.KEY_VALUE
    read = StoreRead(
        is_lookup=is_lookup,
        key=key,
        from_ms=given.get("from-ms"),
        to_ms=given.get("to-ms"),
        as_of_ms=given.get("as-of-ms"),
        is_reverse=given.get("reverse") == "1",
        limit=_PAGE_ROWS if is_streamed else given.get("limit", ROWS_MAX),
        **{
            field: texts.parse_key(given[name])
            for name, field in (("from", "key_from"), ("to", "key_to"), ("after", "after"))
            if name in given
        },
    )
    return _StoreRequest(
        spec,
        read,
        texts,
        given.get("scope") == "local",
        is_streamed,
        parse_partitions(given.get("partitions", "")),
        parse_position(given.get("at-least", "")),
        parse_stale_bounds(given.get("stale-ok-lag"), given.get("stale-ok-age")),
        given.get("wait-ms", WAIT_MS) / 1000,
    )
