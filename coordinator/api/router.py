"""Route frames to the API files that handle them, and encode their responses as frames.

The broker serves the API of each file of this package that has an `API_KEY`, and those that
`absent_features` answers; ApiVersions advertises exactly them. A `Refused` that an API file raises
becomes its code in the response. Any other exception is logged and answered with
UNKNOWN_SERVER_ERROR, except that a BrokenInvariant stops the broker before the log is harmed, and
nothing is answered from then on.
Trace: wire/connection -> here -> api/<name>.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Protocol, cast

from coordinator import api as api_package
from coordinator.api import api_versions
from coordinator.api.absent_features import ABSENT_FEATURE_APIS
from coordinator.api.context import BrokerServices, ReadFrame, Request, RequestContext
from coordinator.api.faulty_answer import apply_fault, wait_until_cancelled
from coordinator.api.request_counters import ApiCounters
from coordinator.errors import Code, Refused
from coordinator.fail_stop import FailStop
from coordinator.faults import Faults, RequestFault
from coordinator.shard.shard import BrokenInvariant
from coordinator.wire.codec import (
    API_BYTES,
    ApiSchema,
    EncodedResponse,
    MalformedRequest,
    RequestHeader,
    create_cached_frame_reader,
    encode_response,
    load_schema,
    read_correlation_id,
    read_request,
    read_request_header,
)
from coordinator.wire.connection import Disconnect
from coordinator.wire.error_codes import CollectErrors, create_error_collector
from coordinator.wire.send_buffer import Answer

log = logging.getLogger(__name__)


class Api(Protocol):
    """Represents an API of Kafka: a module of this package, or a row of `absent_features`.

    A module may also have:

    - `build_error_response`
    - `ADVERTISED`: versions in the place of `VERSIONS`, of which some aren't served
    - `CACHES_REQUESTS = True`, if clients send it all the time, mostly with the same content, so
      that decoded requests are cached
    - `create_frame_reader`, which is given a version and two functions: one that reads any of its
      frames, and one that creates contexts
    """

    API_KEY: int
    VERSIONS: range

    def handle_request(self, request: Any, context: RequestContext) -> Any:
        """Return the response, an awaitable for it, or None if the client wants none.

        Raises: Refused.
        """


def find_apis(package: ModuleType) -> list[Api]:
    """Import the files of a package and return those that are APIs: they have an `API_KEY`.

    Raises: TypeError for one that lacks its versions or its handler.
    """
    names = [f"{package.__name__}.{found.name}" for found in iter_modules(package.__path__)]
    modules = [import_module(name) for name in names if name != __name__]
    apis = [module for module in modules if hasattr(module, "API_KEY")]
    for module in apis:
        for required in ("VERSIONS", "handle_request"):
            if not hasattr(module, required):
                raise TypeError(f"{module.__file__}: an API has {required}")
    return [cast(Api, module) for module in apis]


APIS: tuple[Api, ...] = tuple(
    sorted((*find_apis(api_package), *ABSENT_FEATURE_APIS.values()), key=lambda api: api.API_KEY)
)


def list_api_versions() -> list[dict[str, int]]:
    """Return ApiVersions' list: each API with its first and last version."""
    ranges = [(api.API_KEY, getattr(api, "ADVERTISED", api.VERSIONS)) for api in APIS]
    return [
        {"api_key": key, "min_version": versions[0], "max_version": versions[-1]}
        for key, versions in ranges
    ]


@dataclass(frozen=True, slots=True)
class Route:
    """Holds how to decode and answer one version of one API."""

    response_type: type
    read_frame: ReadFrame
    handle_request: Callable[[Any, RequestContext], Any]
    build_error_response: Callable[[Any, RequestContext, Code], Any]
    counters: ApiCounters
    collect_errors: CollectErrors | None


class Router:
    """Answers the frames of one broker's clients, for the APIs that it is given."""

    def __init__(
        self,
        services: BrokerServices,
        faults: Faults,
        fail_stop: FailStop,
        apis: Iterable[Api] = APIS,
    ) -> None:
        self._services = services
        self._faults = faults
        self._fail_stop = fail_stop
        self._apis = {api.API_KEY: api for api in apis}
        self._read_ns = services.clock.monotonic_ns
        self._routes: dict[bytes, Route] = {}  # by the key and version that frames begin with

    def dispatch_frame(
        self, frame: bytes, client_host: str, arrived_ns: int = 0
    ) -> Answer | Awaitable[Answer]:
        """Answer a frame; return the answer, or an awaitable if it comes later.

        `arrived_ns`: when it came, if it has waited behind others.

        Raises: MalformedRequest, Disconnect.
        """
        if self._fail_stop.failure is not None:
            raise Disconnect("the broker stops")
        if self._faults.request_rules:
            header = read_request_header(frame)
            fault = self._faults.match_request(header.api_key, header.client_id)
            if fault is not None:
                return self._answer_with_injected_fault(fault, frame, client_host)
        return self._answer_request(frame, client_host, arrived_ns)

    def _answer_request(
        self, frame: bytes, client_host: str, arrived_ns: int = 0, fault_code: Code | None = None
    ) -> Answer | Awaitable[Answer]:
        """Answer a request; refuse it with `fault_code` if there is one."""
        begin_ns = self._read_ns()
        route = self._routes.get(frame[:API_BYTES])
        if route is None:
            header = read_request_header(frame)
            route = self._add_route(header, frame[:API_BYTES])
            if route is None:
                return self._encode_unsupported_version_answer(header, client_host)
        request, context = route.read_frame(frame, client_host)
        try:
            if fault_code is not None:
                raise Refused(fault_code, "a fault that was asked for")
            response = route.handle_request(request, context)
            kind = response.__class__
            if (
                kind is not route.response_type
                and kind is not EncodedResponse
                and response is not None
            ):
                times_ns = (arrived_ns, begin_ns, self._read_ns())
                return self._await_response(response, route, request, context, frame, times_ns)
        except Exception as error:
            response = self._build_error_response(error, route, request, context)
        answer = (
            None if response is None else _encode_and_count_errors(frame, context, response, route)
        )
        if arrived_ns:
            route.counters.count_queued_request(arrived_ns, begin_ns, self._read_ns())
        else:
            route.counters.plain_times.record_ns(self._read_ns() - begin_ns)
        return answer

    def _answer_with_injected_fault(
        self, fault: RequestFault, frame: bytes, client_host: str
    ) -> Answer | Awaitable[Answer]:
        """Answer, delay, lose or refuse a request as the fault that strikes it says."""
        match fault.action:
            case "error":
                return self._answer_request(frame, client_host, fault_code=fault.code)
            case "cut-before":
                raise Disconnect("a fault cuts the connection before the request")
            case "lose-request":
                return wait_until_cancelled()
            case _:
                answer = self._answer_request(frame, client_host)
                return apply_fault(answer, fault, self._services.scheduler)

    async def _await_response(
        self,
        awaited: Awaitable[Any],
        route: Route,
        request: Any,
        context: RequestContext,
        frame: bytes,
        times_ns: tuple[int, int, int],
    ) -> Answer:
        """Await the response to a request; `times_ns`: when it arrived, began, and had to wait."""
        route.counters.waiting += 1
        try:
            response = await awaited
        except Exception as error:
            response = self._build_error_response(error, route, request, context)
        finally:
            route.counters.waiting -= 1
        answer = (
            None if response is None else _encode_and_count_errors(frame, context, response, route)
        )
        route.counters.count_late_answer(*times_ns, self._read_ns())
        return answer

    def _build_error_response(
        self, error: Exception, route: Route, request: Any, context: RequestContext
    ) -> Any:
        """Return the error response to a request whose handler raised `error`.

        Raises: Disconnect if there can be none.
        """
        name = type(request).__name__
        if isinstance(error, Disconnect):
            raise error
        if isinstance(error, BrokenInvariant):
            self._fail_stop.stop_on_failure(error)
            raise Disconnect(f"{name}: {error}") from error
        code = Code.UNKNOWN_SERVER_ERROR
        if isinstance(error, Refused):
            code = error.code
        else:
            log.error("%s of client %r failed", name, context.client_id, exc_info=error)
        try:
            return route.build_error_response(request, context, code)
        except Exception as second:
            raise Disconnect(f"{name}: {code.name}, which its answer can't say") from second

    def _add_route(self, header: RequestHeader, frame_start: bytes) -> Route | None:
        """Add the route of a request; return None for an unknown version of ApiVersions.

        Raises: MalformedRequest for any other API or version that isn't served.
        """
        api = self._apis.get(header.api_key)
        if api is None:
            raise MalformedRequest(f"API key {header.api_key} is not served")
        is_served = header.version in api.VERSIONS
        schema = load_schema(header.api_key, header.version) if is_served else None
        if schema is None:
            if api is api_versions:
                return None
            raise MalformedRequest(
                f"version {header.version} of API key {api.API_KEY} is not served"
            )
        read_frame = self._create_frame_reader(api, header.version, schema)
        if getattr(api, "CACHES_REQUESTS", False):
            read_frame = create_cached_frame_reader(frame_start, read_frame)
        route = self._routes[frame_start] = Route(
            schema.response_type,
            read_frame,
            api.handle_request,
            getattr(api, "build_error_response", _build_top_level_error_response),
            self._services.request_counters.get_or_add_counters(
                api.API_KEY, schema.request_type.__name__.removesuffix("Request")
            ),
            create_error_collector(schema.response_type),
        )
        return route

    def _create_frame_reader(self, api: Api, version: int, schema: ApiSchema) -> ReadFrame:
        """Return a function that decodes the requests of one version of an API."""
        services, response_type = self._services, schema.response_type

        def create_context(client_id: str, client_host: str) -> RequestContext:
            return RequestContext(services, version, client_id, client_host, response_type)

        def read_frame(frame: bytes, client_host: str) -> tuple[Request, RequestContext]:
            header = read_request_header(frame)
            request = read_request(schema, frame, header.body_start)
            return request, create_context(header.client_id, client_host)

        if hasattr(api, "create_frame_reader"):
            reader: ReadFrame = api.create_frame_reader(version, read_frame, create_context)
            return reader
        return read_frame

    def _encode_unsupported_version_answer(self, header: RequestHeader, client_host: str) -> Answer:
        """Encode the answer UNSUPPORTED_VERSION to an ApiVersions request of an unknown version.

        Newer clients first send their newest version, and understand the answer in version 0.
        """
        schema = load_schema(api_versions.API_KEY, 0)
        assert schema is not None
        context = RequestContext(
            self._services, 0, header.client_id, client_host, schema.response_type
        )
        response = api_versions.build_error_response(None, context, Code.UNSUPPORTED_VERSION)
        return encode_response(header.correlation_id, response)


def _encode_and_count_errors(
    frame: bytes, context: RequestContext, response: Any, route: Route
) -> Answer:
    """Encode the response to a frame, and count its error codes.

    Raises: Disconnect if the client's version can't express it.
    """
    try:
        if response.__class__ is EncodedResponse:
            if response.error_codes:
                route.counters.count_errors(response.error_codes)
        elif route.collect_errors is not None:
            codes: list[int] = []
            route.collect_errors(response, codes)
            if codes:
                route.counters.count_errors(codes)
        return encode_response(read_correlation_id(frame), response)
    except Exception as error:
        name = type(response).__name__
        log.error("%s of client %r can't be written", name, context.client_id, exc_info=error)
        raise Disconnect(f"{name}: what it should say can't be written") from error


def _build_top_level_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    """Return a response with `code` at the top, for API files that build no other."""
    return context.build_response(error_code=code)
