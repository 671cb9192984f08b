"""Answer GET requests for stores: which there are, one key, and ranges of keys, as lines of JSON.

    GET /stores                 the stores, with the workers that have each partition
    GET /stores/NAME            a range of keys
    GET /stores/NAME/KEY        one key
    GET /queries/NAME           the result of a registered query
    GET /openapi.json           all of this, for programs

`http_parameters` has the parameters, `http_problems` the errors. Position, partitions, age and lag
of an answer are in its headers.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias

import orjson
from anyio import CapacityLimiter, WouldBlock
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from streams.errors import ConfigError, StoreUnavailable
from streams.graph.nodes import StoreKind, StoreSpec
from streams.queries.endpoint_client import MORE_HEADER
from streams.queries.http_parameters import (
    KEY_PARAMETERS,
    QUERY_PARAMETERS,
    RANGE_PARAMETERS,
    parse_arguments,
    read_parameters,
    split_store_path,
)
from streams.queries.http_problems import EXCEPTION_HANDLERS, NO_SUCH_KEY, NotFound
from streams.queries.http_texts import encode_result
from streams.queries.openapi import JSON_TYPE, ROWS_TYPE, EndpointDescription, describe_api
from streams.queries.prompt_responses import PromptResponses
from streams.queries.read_threads import ReadThreads
from streams.queries.request_gate import BEGAN_S, RequestGate
from streams.queries.request_terms import describe_answer, parse_terms
from streams.queries.routed_reads import RoutedReads
from streams.queries.row_stream import RowStream
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_calls import StoreCall
from streams.queries.store_reads import StoreRead
from streams.queries.store_requests import StoreRequest, parse_request
from streams.queries.store_route import StoreRoute
from streams.runtime.threads.query_measurements import QueryMeasurements

EncodedRows: TypeAlias = bytes

_LISTINGS_MAX = 4
"""The lists of stores that are made at a time, and those beside them that wait for brokers."""
_LAG_WAIT_S = 0.5
"""The seconds for which the list of stores waits for brokers to say where changelogs end."""

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
_QUERY = EndpointDescription(
    "/queries/{query}",
    "The result of a query that the application has registered by name, of all partitions.",
    JSON_TYPE,
    {},
    QUERY_PARAMETERS,
    (HTTPStatus.NOT_FOUND, HTTPStatus.INTERNAL_SERVER_ERROR),
    has_position=True,
)
ENDPOINTS = (_LIST, _RANGE, _KEY, _QUERY, _DOCUMENT)


def create_http_api(
    reads: RoutedReads, token: str, measurements: QueryMeasurements | None = None
) -> RequestGate:
    """Create the ASGI application; with a `token` each request has to carry it as bearer."""
    names = [spec.name for spec in _list_readable_stores(reads)]
    queries = sorted(each.name for each in reads.local.queries)
    document = describe_api(ENDPOINTS, names, queries, has_token=bool(token))
    measurements = measurements or QueryMeasurements()
    api = _StoreEndpoints(reads, document, measurements)
    routes = [
        (_LIST.path, api.list_stores),
        ("/queries/{query:path}", api.run_query),
        (_DOCUMENT.path, api.send_document),
    ]
    served = Starlette(
        routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in routes],
        exception_handlers=EXCEPTION_HANDLERS,
    )
    # A key may be empty, and a store's name may not: /stores/ is neither a store nor the list.
    served.router.redirect_slashes = False
    routed = StoreRoute(api.read_store, served)
    prompt = PromptResponses(reads)
    return RequestGate(
        routed, token, measurements, lambda: reads.is_stopping, prompt.find_prompt_response
    )


class _StoreEndpoints:
    """Answers the requests of each path."""

    def __init__(
        self, reads: RoutedReads, document: dict[str, Any], measurements: QueryMeasurements
    ) -> None:
        self._reads = reads
        self._document = orjson.dumps(document)
        self._threads = ReadThreads(reads, measurements)
        self._listings = CapacityLimiter(_LISTINGS_MAX)
        self._samplings = CapacityLimiter(_LISTINGS_MAX)

    async def send_document(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        read_parameters(request.scope["query_string"], {})
        return Response(self._document, media_type=JSON_TYPE)

    async def list_stores(self, request: Request) -> Response:
        """Return the stores of the application, and where each partition is."""
        read_parameters(request.scope["query_string"], {})
        await self._sample_lags()
        stores = await run_sync(self._describe_stores, limiter=self._listings)
        return Response(orjson.dumps({"stores": stores}), media_type=JSON_TYPE)

    async def _sample_lags(self) -> None:
        """Wait until brokers have said how far the standbys here are behind, within bounds.

        Where as many others wait the last lags are told at once.
        """
        try:
            self._samplings.acquire_nowait()
        except WouldBlock:
            return
        names = [spec.name for spec in _list_readable_stores(self._reads)]
        try:
            await run_sync(self._reads.local.sample_standby_lags, names, _LAG_WAIT_S)
        finally:
            self._samplings.release()

    def _describe_stores(self) -> list[dict[str, Any]]:
        """Return the stores with their hosts, and the lags of the standbys that are here."""
        local, stores = self._reads.local, []
        for spec in _list_readable_stores(self._reads):
            hosts = local.list_hosts(spec.name)
            own = [each.role for each in hosts if each.address == self._reads.own_endpoint]
            lags = local.measure_standby_lags(spec.name) if "standby" in own else {}
            described: list[dict[str, Any]] = []
            for each in hosts:
                host = {
                    "address": each.address,
                    "partition": each.partition,
                    "role": each.role,
                }
                if each.role == "standby" and each.address == self._reads.own_endpoint:
                    host["lag"] = lags.get(each.partition)
                described.append(host)
            serdes = {"key_serde": spec.key.name, "value_serde": spec.value.name}
            stores.append(
                {"name": spec.name, "kind": spec.kind.name.lower(), **serdes, "hosts": described}
            )
        return stores

    async def read_store(self, scope: Scope) -> Response:
        """Return the rows that a request asks for."""
        name, key_text = split_store_path(scope["raw_path"])
        try:
            spec, _ = self._reads.local.find_store(name)
        except ConfigError as error:
            raise NotFound(str(error)) from error
        wanted = parse_request(spec, key_text, scope["query_string"])
        answer, body = await self._read_page(wanted, wanted.read, scope.get(BEGAN_S))
        headers = describe_answer(answer)
        if wanted.read.is_lookup and not answer.rows and not wanted.terms.is_local:
            raise NotFound(f"store {spec.name!r} has no value of this key", NO_SUCH_KEY, headers)
        if not wanted.is_streamed:
            headers[MORE_HEADER] = "1" if answer.has_more else "0"
            return Response(body, headers=headers, media_type=ROWS_TYPE)
        pages = partial(self._read_next_page, wanted)
        return RowStream(body, answer, pages, headers=headers, media_type=ROWS_TYPE)

    async def run_query(self, request: Request) -> Response:
        """Return the result of a registered query; with `scope=local` a line for each partition."""
        name, rest = split_store_path(request.scope["raw_path"])
        try:
            query = self._reads.local.find_query(name if rest is None else f"{name}/{rest}")
        except ConfigError as error:
            raise NotFound(str(error)) from error
        given = read_parameters(request.scope["query_string"], QUERY_PARAMETERS)
        terms = parse_terms(query.store, given)
        call = StoreCall(query, parse_arguments(given.get("arguments", "{}")))

        def encode_results(answer: StoreAnswer) -> bytes:
            if terms.is_local:
                return b"".join(map(encode_result, answer.rows))
            return orjson.dumps(call.merge_results([row.value for row in answer.rows]))

        read = StoreRead(call=call)
        try:
            answer, body = await self._threads.read_answer(terms, read, encode_results)
        except asyncio.CancelledError:
            if not self._reads.is_stopping:
                raise
            raise StoreUnavailable("this worker is being stopped: ask another one") from None
        media_type = ROWS_TYPE if terms.is_local else JSON_TYPE
        return Response(body, headers=describe_answer(answer), media_type=media_type)

    async def _read_next_page(
        self, wanted: StoreRequest, before: StoreAnswer
    ) -> tuple[StoreAnswer, EncodedRows]:
        """Return the page of a range behind another one."""
        return await self._read_page(wanted, replace(wanted.read, after=before.rows[-1].key))

    async def _read_page(
        self, wanted: StoreRequest, read: StoreRead, asked_at_s: float | None = None
    ) -> tuple[StoreAnswer, EncodedRows]:
        """Return rows, and their lines. Raises StoreUnavailable, ConfigError, ValueError."""

        def encode_rows(answer: StoreAnswer) -> bytes:
            return b"".join(map(wanted.texts.encode_row, answer.rows))

        return await self._threads.read_answer(wanted.terms, read, encode_rows, asked_at_s)


def _list_readable_stores(reads: RoutedReads) -> list[StoreSpec]:
    """Return the stores that may be asked for, sorted: a suppression's buffer is not read."""
    specs = [reads.local.find_store(name)[0] for name in reads.local.store_names]
    return [spec for spec in specs if spec.kind is not StoreKind.BUFFER]
