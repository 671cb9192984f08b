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
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from streams.membership.response_schemas import RESPONSE_SCHEMAS

_FIND_COORDINATOR_API_KEY, _API_VERSIONS_API_KEY = 10, 18
_FRAME_BYTES_MAX = 100 * 1024 * 1024
_WAKE_INTERVAL_S = 0.1


class ConnectionLost(Exception):
    """Signals that no answer came: the request may have taken effect."""


def build_entity(entity: type[Any], **fields: Any) -> Any:
    """Build a kio entity of any version; fields that this version doesn't have are left out."""
    names = {field.name for field in dataclasses.fields(entity)}
    return entity(**{name: value for name, value in fields.items() if name in names})


class BrokerConnection:
    """Sends requests to one broker address (host, port) and returns the responses.

    Raises ConnectionLost for every network error. `lock` is this connection's own: threads that
    share the connection take turns.
    """

    def __init__(
        self,
        address: tuple[str, int],
        client_id: str,
        timeout_s: float,
        lock: AbstractContextManager[object],
    ) -> None:
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._lock = lock
        self._correlation_ids = itertools.count()
        try:
            self._socket = socket.create_connection(address, timeout=timeout_s)
        except OSError as error:
            raise ConnectionLost(f"{address[0]}:{address[1]}: {error}") from error
        self._socket.settimeout(_WAKE_INTERVAL_S)
        answer = self.send_request(load_request_schema(_API_VERSIONS_API_KEY, 0)())
        self._broker_versions = {key.api_key: int(key.max_version) for key in answer.api_keys}

    def negotiate_version(self, api_key: int, version_max: int) -> int:
        """Return the highest version of an API that the broker has, at most `version_max`.

        Raises: ConnectionLost if the broker doesn't have the API.
        """
        if api_key not in self._broker_versions:
            raise ConnectionLost(f"the broker doesn't serve API {api_key}")
        return min(version_max, self._broker_versions[api_key])

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
        with self._lock:
            correlation = next(self._correlation_ids)
            wakes = round((self._timeout_s if timeout_s is None else timeout_s) / _WAKE_INTERVAL_S)
            try:
                self._socket.settimeout(self._timeout_s)
                self._socket.sendall(self._encode_frame(request, correlation))
                self._socket.settimeout(_WAKE_INTERVAL_S)
                size = int.from_bytes(self._read_bytes(4, wakes, is_given_up), "big")
                if size > _FRAME_BYTES_MAX:
                    raise ConnectionLost(f"an answer of {size} bytes")
                return self._decode_response(
                    request, correlation, self._read_bytes(size, wakes, is_given_up)
                )
            except OSError as error:
                self.close()
                raise ConnectionLost(str(error) or "closed by the broker") from error
            except (SerialError, ValueError) as error:
                self.close()
                raise ConnectionLost(f"an answer that can't be read: {error!r}") from error
            except ConnectionLost:
                self.close()
                raise

    def close(self) -> None:
        self._socket.close()

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

    def _read_bytes(self, size: int, wakes_left: int, is_given_up: Callable[[], bool]) -> bytes:
        """Read `size` bytes; raise ConnectionLost after `wakes_left` intervals without data."""
        chunks = bytearray()
        while len(chunks) < size:
            try:
                chunk = self._socket.recv(size - len(chunks))
            except TimeoutError:
                wakes_left -= 1
                if is_given_up():
                    raise ConnectionLost("given up") from None
                if wakes_left <= 0:
                    raise ConnectionLost("no answer in time") from None
                continue
            if not chunk:
                raise ConnectionLost("closed by the broker")
            chunks += chunk
        return bytes(chunks)


OpenConnection = Callable[[tuple[str, int] | None], BrokerConnection]
"""Connects to an address, or to any of the bootstrap servers (None)."""


def find_coordinator(
    bootstrap: BrokerConnection, key: str, *, key_type: int = 0
) -> tuple[str, int]:
    """Return the address of the coordinator of a group, or (`key_type` 1) of a transactional id.

    Any broker can be asked. Raises: ConnectionLost.
    """
    request: Any = load_request_schema(_FIND_COORDINATOR_API_KEY, 3)
    answer = bootstrap.send_request(request(key=key, key_type=key_type))
    if answer.error_code is not ErrorCode.none:
        raise ConnectionLost(f"no coordinator: {answer.error_code.name}")
    return answer.host, answer.port


def load_request_classes(
    connection: BrokerConnection, api_key: int, version_max: int
) -> dict[str, Any]:
    """Return the classes of a request by name, in the highest version that both sides have."""
    request_type = load_request_schema(api_key, connection.negotiate_version(api_key, version_max))
    return vars(importlib.import_module(request_type.__module__))
