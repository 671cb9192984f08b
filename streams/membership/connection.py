"""Connect to a broker by the Kafka protocol: blocking, one request at a time.

librdkafka has no custom assignor, so membership goes over this connection. kio is the codec; the
version of each request is the highest that both the broker and kio's schemas have, up to the
caller's maximum.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import itertools
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from streams.common.addresses import Address, format_address, parse_addresses
from streams.connection.security import PLAINTEXT, ConnectionSecurity
from streams.connection.tls import explain_handshake_failure, explain_missing_tls
from streams.connection.tokens import TokenUnavailable
from streams.errors import AuthenticationError
from streams.membership.authentication import authenticate_and_get_session_s
from streams.membership.authorization import check_authorized
from streams.membership.broker_socket import (
    WaitLimit,
    connect_socket,
    create_wait_limit,
    perform_tls_handshake,
    read_bytes,
)
from streams.membership.kafka_release import explain_missing_api
from streams.membership.response_schemas import RESPONSE_SCHEMAS

_FIND_COORDINATOR_API_KEY, _API_VERSIONS_API_KEY = 10, 18
_FRAME_BYTES_MAX = 100 * 1024 * 1024
_TLS_ALERT = b"\x15\x03"
"""The first bytes of a TLS alert, which a port that speaks TLS answers (RFC 8446, section 5.1)."""
_REAUTHENTICATED_AFTER = 0.85
"""The part of a session after which the next request authenticates again, as in Kafka's clients."""


class ConnectionLost(Exception):
    """Signals that no answer came: the request may have taken effect.

    `hint`: which setting may be wrong, where the connection ended as it would if one were.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConnectionUnanswered(ConnectionLost):
    """Signals that a broker has sent no answer in time, and has not closed the connection."""


class ConnectionClosed(ConnectionLost):
    """Signals that the broker closed the connection instead of an answer."""


class BrokerNotReady(ConnectionLost):
    """Signals that a broker can't answer at this moment, or that another one has to be asked.

    So it is while a partition, a group or a transactional id gets another leader or coordinator.
    Nothing has taken effect: the same request may succeed soon, at the broker that is looked up
    anew.
    """


def create_refusal(code: ErrorCode, message: str) -> ConnectionLost:
    """Return the error for a code that a broker has answered: BrokerNotReady if it may pass.

    Which codes may pass is Kafka's own table (`Errors`, RetriableException).
    """
    refusal = BrokerNotReady if code.retriable else ConnectionLost
    return refusal(f"{message}: {code.name}")


def build_entity(entity: type[Any], **fields: Any) -> Any:
    """Build a kio entity of any version; fields that this version doesn't have are left out."""
    names = {field.name for field in dataclasses.fields(entity)}
    return entity(**{name: value for name, value in fields.items() if name in names})


class BrokerConnection:
    """Sends requests to one broker address (host, port) and returns the responses.

    Raises ConnectionLost for every network error, AuthenticationError where the broker refuses the
    credentials or isn't trusted. `lock` is this connection's own: threads that share the connection
    take turns. A session that ends (KIP-368) is renewed before a request that would exceed it. If
    that is refused, the connection is lost, and whoever opens the next one learns what is refused.
    """

    address: Address | None = None
    """The host and port that the connection was opened to."""

    def __init__(
        self,
        address: Address,
        client_id: str,
        timeout_s: float,
        lock: AbstractContextManager[object],
        security: ConnectionSecurity = PLAINTEXT,
        is_given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """Open the connection within `timeout_s`, or until `is_given_up()` is true.

        A request has `timeout_s` of its own, unless it says otherwise.
        """
        self.address = self._address = address
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._lock = lock
        self._security = security
        self._correlation_ids = itertools.count()
        self._reauthenticate_at_s = float("inf")
        limit = create_wait_limit(timeout_s, is_given_up)
        try:
            self._socket = connect_socket(address, limit)
        except OSError as error:
            lost = ConnectionUnanswered if isinstance(error, TimeoutError) else ConnectionLost
            raise lost(f"{format_address(address)}: {error}") from error
        if security.tls is not None:
            self._begin_tls(security.tls, limit)
        with self._lock, self._close_on_failure():
            answer = self._exchange_messages(load_request_schema(_API_VERSIONS_API_KEY, 0)(), limit)
            self.api_versions = {int(key.api_key): int(key.max_version) for key in answer.api_keys}
            if security.mechanism is not None:
                self._authenticate_by_sasl(limit)

    def negotiate_version(self, api_key: int, version_max: int) -> int:
        """Return the highest version of an API that the broker has, at most `version_max`.

        Raises: ConnectionLost if the broker doesn't have the API.
        """
        if api_key not in self.api_versions:
            raise ConnectionLost(explain_missing_api(api_key, self.api_versions))
        return min(version_max, self.api_versions[api_key])

    def send_request(
        self,
        request: Any,
        *,
        timeout_s: float | None = None,
        is_given_up: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Send a request and return its response.

        Waits at most `timeout_s`, or until `is_given_up()` is true.
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        with self._lock, self._close_on_failure():
            if time.monotonic() >= self._reauthenticate_at_s:
                self._renew_session(create_wait_limit(self._timeout_s, is_given_up))
            return self._exchange_messages(request, create_wait_limit(timeout_s, is_given_up))

    def close(self) -> None:
        self._socket.close()

    def close_when_unused(self) -> None:
        """Close the connection after the request that another thread may have on it."""
        with self._lock:
            self.close()

    def _begin_tls(self, context: ssl.SSLContext, limit: WaitLimit) -> None:
        """Begin TLS. Raises AuthenticationError, or ConnectionLost for a mere network error."""
        try:
            self._socket = perform_tls_handshake(self._socket, context, self._address[0], limit)
        except OSError as error:
            self._socket.close()
            raise self._translate_network_error(error, "in the TLS handshake") from error

    def _authenticate_by_sasl(self, limit: WaitLimit) -> None:
        """Authenticate by SASL, and note when the session is to be renewed."""
        began_s = time.monotonic()
        session_s = authenticate_and_get_session_s(
            lambda request: self._exchange_messages(request, limit),
            self.negotiate_version,
            self._security,
            self._describe_broker(),
        )
        self._reauthenticate_at_s = (
            began_s + _REAUTHENTICATED_AFTER * session_s if session_s else float("inf")
        )

    def _renew_session(self, limit: WaitLimit) -> None:
        """Authenticate again. Raises ConnectionLost if the broker refuses the credentials.

        They were right before, and may be replaced by others since: the next connection has those.
        """
        try:
            self._authenticate_by_sasl(limit)
        except AuthenticationError as error:
            raise ConnectionLost(f"the session is over: {error}") from error

    def _describe_broker(self) -> str:
        return f"the broker at {format_address(self._address)}"

    @contextmanager
    def _close_on_failure(self) -> Iterator[None]:
        """Close the connection if the block of this context manager fails.

        Raises ConnectionLost, or AuthenticationError, in place of errors of the network.
        """
        try:
            yield
        except OSError as error:
            self.close()
            raise self._translate_network_error(error, "") from error
        except UnicodeEncodeError:
            self.close()
            # Its text would show the user and the password.
            raise ConnectionLost("sasl.username or sasl.password is no UTF-8") from None
        except (SerialError, ValueError) as error:
            self.close()
            raise ConnectionLost(f"an answer that can't be read: {error!r}") from error
        except TokenUnavailable as error:
            self.close()
            raise ConnectionLost(str(error)) from error
        except BaseException:
            self.close()
            raise

    def _translate_network_error(self, error: OSError, moment: str) -> Exception:
        """Return AuthenticationError for what TLS refuses, and ConnectionLost for all else."""
        if explained := explain_handshake_failure(error, self._address, self._security.settings):
            return AuthenticationError(explained)
        if hint := explain_missing_tls(error, self._address):
            return ConnectionLost(str(error), hint)
        text = f"{str(error) or 'closed by the broker'} {moment}".rstrip()
        is_closed = isinstance(error, ConnectionResetError | BrokenPipeError | ssl.SSLEOFError)
        if moment and is_closed:
            return ConnectionLost(
                text,
                f"{self._describe_broker()} closed the connection in the TLS handshake, as a port "
                "without TLS does: take the port of an SSL or SASL_SSL listener, or set "
                "security.protocol to PLAINTEXT or SASL_PLAINTEXT",
            )
        if isinstance(error, TimeoutError):
            return ConnectionUnanswered(text)
        return ConnectionClosed(text) if is_closed else ConnectionLost(text)

    def _exchange_messages(self, request: Any, limit: WaitLimit) -> Any:
        """Send a request and read its response."""
        correlation = next(self._correlation_ids)
        self._socket.settimeout(min(limit.remaining_s, self._timeout_s))
        self._socket.sendall(self._encode_frame(request, correlation))
        prefix = read_bytes(self._socket, 4, limit)
        size = int.from_bytes(prefix, "big")
        if size > _FRAME_BYTES_MAX:
            if prefix.startswith(_TLS_ALERT) and self._security.tls is None:
                raise AuthenticationError(
                    f"{self._describe_broker()} speaks TLS on this port: set "
                    "security.protocol to SSL, or SASL_SSL"
                )
            raise ConnectionLost(f"an answer of {size} bytes")
        return self._decode_response(request, correlation, read_bytes(self._socket, size, limit))

    def _encode_frame(self, request: Any, correlation_id: int) -> bytes:
        """Return the bytes of a request with its size and header."""
        header_type = request.__header_schema__
        header = build_entity(
            header_type,
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=correlation_id,
            client_id=self._client_id,
        )
        buffer = io.BytesIO()
        entity_writer(header_type)(buffer, header)
        entity_writer(type(request))(buffer, request)
        data = buffer.getvalue()
        return len(data).to_bytes(4, "big") + data

    def _decode_response(self, request: Any, correlation_id: int, data: bytes) -> Any:
        """Decode the response to a request; raise ConnectionLost if it answers another one."""
        api_and_version = request.__api_key__, request.__version__
        answer_type: Any = RESPONSE_SCHEMAS.get(api_and_version) or load_response_schema(
            *api_and_version
        )
        header, size = entity_reader(answer_type.__header_schema__)(data, 0)
        if header.correlation_id != correlation_id:
            raise ConnectionLost(f"answer {header.correlation_id} to request {correlation_id}")
        answer, _ = entity_reader(answer_type)(data, size)
        return answer


OpenConnection = Callable[[Address | None], BrokerConnection]
"""Connects to an address, or to any of the bootstrap servers (None)."""


def connect_to_any_server(
    servers: str, open_connection: Callable[[Address], BrokerConnection]
) -> BrokerConnection:
    """Connect to the first of the bootstrap `servers` (host:port,...) that answers.

    Raises as `connect_to_any_address` does.
    """
    return connect_to_any_address(parse_addresses(servers), open_connection)


def connect_to_any_address(
    addresses: Iterable[Address],
    open_connection: Callable[[Address], BrokerConnection],
) -> BrokerConnection:
    """Connect to the first of the `addresses` that answers.

    Raises: AuthenticationError if one refuses and none lets in, else ConnectionLost if none does.
    """
    refusal: AuthenticationError | None = None
    failure: ConnectionLost | None = None
    for address in addresses:
        try:
            return open_connection(address)
        except AuthenticationError as error:
            refusal = refusal or error
        except ConnectionLost as error:
            failure = failure if failure and failure.hint else error
    raise refusal or failure or ConnectionLost("no bootstrap server is named")


def find_coordinator(
    bootstrap: BrokerConnection, key: str, *, key_type: int = 0, operation: str = "Describe"
) -> Address:
    """Return the address of the coordinator of a group, or (`key_type` 1) of a transactional id.

    Any broker can be asked. `operation`: what the caller needs to be allowed to; it implies the
    Describe that the request needs. Raises: ConnectionLost, AuthorizationError.
    """
    request: Any = load_request_schema(_FIND_COORDINATOR_API_KEY, 3)
    answer = bootstrap.send_request(request(key=key, key_type=key_type))
    check_authorized(answer.error_code, operation, key)
    if answer.error_code is not ErrorCode.none:
        raise create_refusal(answer.error_code, "no coordinator")
    return answer.host, answer.port


def load_request_classes(
    connection: BrokerConnection, api_key: int, version_max: int
) -> dict[str, Any]:
    """Return the classes of a request by name, in the highest version that both sides have."""
    request_type = load_request_schema(api_key, connection.negotiate_version(api_key, version_max))
    return vars(importlib.import_module(request_type.__module__))
