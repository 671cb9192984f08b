"""Ask another worker for what its tasks have committed in a store, over HTTP."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from threading import Lock
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, quote_plus

import httptools
import orjson

from streams.common.addresses import parse_address
from streams.errors import ConfigError, QueryFailed, StoreUnavailable
from streams.graph.nodes import StoreSpec
from streams.queries.committed_reads import Position
from streams.queries.endpoint_connections import EndpointConnections, EndpointResponse
from streams.queries.http_texts import (
    decode_result,
    decode_row,
    format_key,
    format_position,
    format_stale_bounds,
    parse_position,
)
from streams.queries.loop_connections import LoopConnections
from streams.queries.query_tls import CHECK_INTERVAL_S, ChangedFiles, QueryTls
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead, StoreRow

RequestPath: TypeAlias = str

log = logging.getLogger(__name__)

POSITION_HEADER = "Millrace-Position"
PARTITIONS_HEADER = "Millrace-Partitions"
AGE_HEADER = "Millrace-Age-Ms"
LAG_HEADER = "Millrace-Lag"
MORE_HEADER = "Millrace-More"
_POSITION, _PARTITIONS, _AGE, _LAG, _MORE = (
    name.lower().encode()
    for name in (POSITION_HEADER, PARTITIONS_HEADER, AGE_HEADER, LAG_HEADER, MORE_HEADER)
)
WAIT_MS_MAX = 60_000
"""The ms that a worker waits at most before it answers."""
_NO_TLS = QueryTls()
_ERRORS = (OSError, httptools.HttpParserError, ValueError)


class _Clients(NamedTuple):
    """Holds the connections that threads use, and those of the loop of the thread that serves."""

    blocking: EndpointConnections
    on_loop: LoopConnections

    def close(self) -> None:
        """Close all connections."""
        self.blocking.close()
        self.on_loop.close()


class EndpointClient:
    """Sends reads to the endpoints of other workers, over connections that are kept open.

    It may be used by several threads. `token` is the application's `query_token`, or empty. With
    `tls` it asks over HTTPS, and takes up changes of the authorities' file. Raises ConfigError for
    a file that can't be used.
    """

    def __init__(self, token: str, tls: QueryTls = _NO_TLS) -> None:
        self._authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._tls = tls
        self._files = ChangedFiles({"authorities": tls.authorities}, time.monotonic)
        self._checked_at_s = time.monotonic()
        self._lock = Lock()
        self._clients = self._create_clients()

    def _create_clients(self) -> _Clients:
        """Create both clients, which open connections when they need them. Raises ConfigError."""
        created = self._tls.create_client_context()
        context = created if self._tls.is_used else None
        return _Clients(EndpointConnections(context), LoopConnections(context))

    def _get_clients(self) -> _Clients:
        """Return the clients that trust the authorities in the file as it is now."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._checked_at_s < CHECK_INTERVAL_S:
                return self._clients
            self._checked_at_s = now_s
            if self._files.take_settled_change():
                try:
                    connected = self._create_clients()
                except ConfigError as error:
                    log.warning("%s: those before stay in use", error)
                else:
                    log.info("query_ssl_ca_location: changed")
                    self._clients.close()  # threads have the responses that they wait for
                    self._clients = connected
            return self._clients

    def read(
        self,
        endpoint: str,
        spec: StoreSpec,
        read: StoreRead,
        *,
        partitions: Collection[int],
        at_least: Position,
        stale_ok: StaleBounds | None,
        timeout_s: float,
    ) -> StoreAnswer:
        """Return the answer of the worker at `endpoint` (host:port) for its tasks of `partitions`.

        Raises StoreUnavailable if it does not answer in time, or can't answer now; ConfigError for
        a read that it refuses.
        """
        target = _format_target(spec, read, partitions, at_least, stale_ok, timeout_s)
        sent_at_s = time.monotonic()
        try:
            response = self._get_clients().blocking.send_request(
                parse_address(endpoint),
                self._format_message(endpoint, target),
                max(timeout_s, 0.001),
                may_repeat=read.call is None,
            )
        except _ERRORS as error:
            raise _create_unanswered_error(endpoint, error) from error
        answer = _read_response(endpoint, spec, read, response)
        return answer._replace(age_s=answer.age_s + time.monotonic() - sent_at_s)

    async def read_on_loop(
        self,
        endpoint: str,
        spec: StoreSpec,
        read: StoreRead,
        *,
        partitions: Collection[int],
        at_least: Position,
        timeout_s: float,
    ) -> StoreAnswer:
        """Return the answer of active tasks at `endpoint`; the running loop goes on meanwhile.

        It is the same loop for each call. There is one attempt: a connection that has ended since
        it was used is StoreUnavailable, too.
        """
        target = _format_target(spec, read, partitions, at_least, None, timeout_s)
        sent_at_s = time.monotonic()
        try:
            response = await self._get_clients().on_loop.send_request(
                parse_address(endpoint), self._format_message(endpoint, target), timeout_s
            )
        except _ERRORS as error:
            raise _create_unanswered_error(endpoint, error) from error
        answer = _read_response(endpoint, spec, read, response)
        return answer._replace(age_s=answer.age_s + time.monotonic() - sent_at_s)

    def start_read_on_loop(
        self,
        endpoint: str,
        spec: StoreSpec,
        read: StoreRead,
        *,
        partition: int,
        at_least: Position,
        timeout_s: float,
        on_answer: Callable[[StoreAnswer | None], None],
    ) -> bool:
        """Send `read_on_loop`'s request if a connection is idle; return whether one was.

        `on_answer` is called with the answer, or None if there is none, and needs no task.
        """
        target = _format_target(spec, read, (partition,), at_least, None, timeout_s)
        sent_at_s = time.monotonic()

        def take_response(found: EndpointResponse | Exception) -> None:
            answer = None
            if not isinstance(found, Exception):
                with suppress(Exception):  # which whoever asks again meets, and tells
                    read_answer = _read_response(endpoint, spec, read, found)
                    age_s = read_answer.age_s + time.monotonic() - sent_at_s
                    answer = read_answer._replace(age_s=age_s)
            on_answer(answer)

        return self._get_clients().on_loop.send_on_idle(
            parse_address(endpoint),
            self._format_message(endpoint, target),
            timeout_s,
            take_response,
        )

    def _format_message(self, endpoint: str, target: str) -> bytes:
        """Return the request for a path and its parameters."""
        return (f"GET {target} HTTP/1.1\r\nHost: {endpoint}\r\n{self._authorization}\r\n").encode(
            "ascii"
        )

    def close_on_loop(self) -> None:
        """Let the loop close its connections, while it runs still."""
        with self._lock:
            self._clients.on_loop.close()

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._clients.close()


def _format_target(
    spec: StoreSpec,
    read: StoreRead,
    partitions: Collection[int],
    at_least: Position,
    stale_ok: StaleBounds | None,
    timeout_s: float,
) -> RequestPath:
    """Return the path and the parameters by which a worker is asked for its tasks."""
    path, parameters = _format_request(spec, read)
    wait_ms = min(int(timeout_s * 1000), WAIT_MS_MAX)
    parameters |= {"scope": "local", "wait-ms": str(wait_ms)}
    parameters["partitions"] = ",".join(map(str, sorted(partitions)))
    parameters |= format_stale_bounds(stale_ok)
    if at_least:
        parameters["at-least"] = format_position(at_least)
    return f"{path}?{_format_parameters(parameters)}"


def _create_unanswered_error(endpoint: str, error: Exception) -> StoreUnavailable:
    """Return the error that says why a worker has sent no response."""
    return StoreUnavailable(f"worker {endpoint} does not answer: {error or type(error).__name__}")


def _read_response(
    endpoint: str, spec: StoreSpec, read: StoreRead, response: EndpointResponse
) -> StoreAnswer:
    """Return the answer in a response. Raises StoreUnavailable, ConfigError, QueryFailed."""
    if response.status == HTTPStatus.OK:
        decode = decode_result if read.call else partial(decode_row, spec.key, spec.value)
        return _parse_answer(endpoint, decode, response)
    problem = f"worker {endpoint}: {_read_problem(response)}"
    if response.status == HTTPStatus.INTERNAL_SERVER_ERROR and read.call is not None:
        raise QueryFailed(problem)
    if response.status == HTTPStatus.BAD_REQUEST:
        raise ConfigError(problem)
    raise StoreUnavailable(problem)


def _format_request(spec: StoreSpec, read: StoreRead) -> tuple[RequestPath, dict[str, str]]:
    """Return the path and the parameters of a read."""
    if read.call is not None:
        path = f"/queries/{quote(read.call.query.name, safe='')}"
        return path, {"arguments": read.call.arguments_json.decode()}
    path = f"/stores/{quote(spec.name, safe='')}"
    if read.is_lookup:
        # A key may be empty in bytes, and a path may not.
        path += f"/={quote(format_key(spec.key, read.key), safe='')}"
    parameters = {"limit": str(read.limit), "format": "bytes"}
    for name in ("key_from", "key_to", "after"):
        if (key := getattr(read, name)) is not None:
            parameters[name.removeprefix("key_")] = format_key(spec.key, key)
    for name in ("from_ms", "to_ms", "as_of_ms", "after_start_ms", "after_end_ms"):
        if (time_ms := getattr(read, name)) is not None:
            parameters[name.replace("_", "-")] = str(time_ms)
    if read.is_reverse:
        parameters["reverse"] = "1"
    return path, parameters


def _format_parameters(parameters: Mapping[str, str]) -> str:
    """Return the query of a URL; the names have no characters that are to be quoted."""
    return "&".join(
        f"{name}={text if text.isalnum() and text.isascii() else quote_plus(text)}"
        for name, text in parameters.items()
    )


def _parse_answer(
    endpoint: str, decode: Callable[[bytes], StoreRow], response: EndpointResponse
) -> StoreAnswer:
    """Return the answer in a response. Raises StoreUnavailable for one that no worker sends."""
    try:
        headers = {name: value.decode() for name, value in response.headers.items()}
        partitions = headers[_PARTITIONS]
        return StoreAnswer(
            [decode(line) for line in response.content.splitlines()],
            headers.get(_MORE) == "1",
            parse_position(headers[_POSITION]),
            frozenset(int(each) for each in partitions.split(",") if each),
            int(headers[_AGE]) / 1000,
            int(headers[_LAG]) if _LAG in headers else None,
        )
    except (KeyError, ValueError) as error:
        raise StoreUnavailable(f"worker {endpoint} has sent no rows: {error!r}") from error


def _read_problem(response: EndpointResponse) -> str:
    """Return the detail of a problem document, or the status of any other response."""
    try:
        return str(orjson.loads(response.content)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP status {response.status}"
