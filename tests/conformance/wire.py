"""Provide a small blocking client for any API in any version, with kio as the codec.

For what librdkafka can't say: a stale epoch, a repeated batch, a chosen version. Fields are given
as keyword arguments with kio's names, nested structures as dicts, durations in ms; what is left out
takes the schema's default. A field that the version does not have is an error, so that a case can't
pass without being sent.

Answers that every client repeats (the coordinator is loading, or not there yet) are repeated here
too, for at most `HANG_LIMIT_S`; everything else is the caller's to judge.
"""

from __future__ import annotations

import dataclasses
import io
import socket
import struct
import time
import types
import typing
from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum
from typing import Any, Self

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from coordinator.errors import Code
from streams.membership.response_schemas import RESPONSE_SCHEMAS
from tests.answers import codes
from tests.processes import HANG_LIMIT_S

CLIENT_ID = "conformance"
PASSING = frozenset(
    {Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR}
)


class Api(IntEnum):
    """Lists the API keys that the cases use."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    INCREMENTAL_ALTER_CONFIGS = 44
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    UNREGISTER_BROKER = 64
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89


class Disconnected(RuntimeError):
    """Reports that the broker closed the connection instead of answering."""


def build(entity_type: Any, fields: Mapping[str, Any]) -> Any:
    """Build an entity from plain values: dicts, iterables for arrays, and durations in ms."""
    known = {field.name: field for field in dataclasses.fields(entity_type)}
    unknown = fields.keys() - known.keys()
    if unknown:
        name = f"{entity_type.__name__} v{entity_type.__version__}"
        raise TypeError(f"{name} has no {sorted(unknown)}; it has {sorted(known)}")
    values = {
        name: _value(field, fields[name]) if name in fields else _default(field)
        for name, field in known.items()
    }
    return entity_type(**values)


def _value(field: dataclasses.Field[Any], value: Any) -> Any:
    kafka_type = field.metadata.get("kafka_type") or ""
    if kafka_type.startswith("timedelta") and not isinstance(value, timedelta):
        return timedelta(milliseconds=value)
    kind = _without_none(field.type)
    if value is None:
        return None
    if typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        if dataclasses.is_dataclass(item):
            return tuple(build(item, each) for each in value)
        return tuple(value)
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        return build(kind, value)
    return value


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    kafka_type = field.metadata.get("kafka_type") or ""
    if kafka_type.startswith("timedelta"):
        return timedelta(0)
    kind = _without_none(field.type)
    if kind is not field.type:
        return None
    if typing.get_origin(kind) is tuple:
        return ()
    if dataclasses.is_dataclass(kind):
        return build(kind, {})
    return {"string": "", "bytes": b"", "records": b"", "bool": False}.get(kafka_type, 0)


def _without_none(kind: Any) -> Any:
    """Return the type itself, or the other half of `X | None`."""
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        (kind,) = (each for each in typing.get_args(kind) if each is not types.NoneType)
    return kind


def plain(value: Any) -> Any:
    """Return a response as plain values: dicts, lists, ints for codes, ms for durations.

    Throttle times are left out.
    """
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in fields if name != "throttle_time"}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    return int(value) if isinstance(value, ErrorCode) else value


class Client:
    """Represents one connection: requests go out and responses come back in order."""

    def __init__(
        self, bootstrap_servers: str, *, timeout_s: float = HANG_LIMIT_S, complete: bool = False
    ) -> None:
        """Connect to the broker.

        `complete`: this broker has every version, so one that it lacks is a failure.
        """
        host, _, port = bootstrap_servers.split(",")[0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=HANG_LIMIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(timeout_s)
        self._complete = complete
        self._correlation_id = 0
        self._expected: dict[int, type[Any]] = {}
        self._advertised: dict[int, range] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, api_key: int, version: int, **fields: Any) -> Any:
        """Send a request and return the response; repeat it if the coordinator is not ready."""
        deadline = time.monotonic() + HANG_LIMIT_S
        while True:
            response = self.receive(self.post(api_key, version, **fields))
            if PASSING.isdisjoint(codes(response)) or time.monotonic() > deadline:
                return response
            time.sleep(0.02)

    def post(self, api_key: int, version: int, **fields: Any) -> int:
        """Send without waiting; return the number to `receive` the response with."""
        self._check_advertised(api_key, version)
        request_type: Any = load_request_schema(api_key, version)
        self._correlation_id += 1
        header = request_type.__header_schema__(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=CLIENT_ID,
        )
        payload = io.BytesIO()
        entity_writer(type(header))(payload, header)
        entity_writer(request_type)(payload, build(request_type, fields))
        self.write_frame(payload.getvalue())
        known: Any = RESPONSE_SCHEMAS.get((api_key, version))
        self._expected[self._correlation_id] = known or load_response_schema(api_key, version)
        return self._correlation_id

    def receive(self, correlation_id: int) -> Any:
        """Return the response to the request of that number, which must be the next to come."""
        response_type = self._expected.pop(correlation_id)
        frame = self.read_frame()
        header_type = response_type.__header_schema__
        header, size = entity_reader(header_type)(frame, 0)
        assert header.correlation_id == correlation_id, "answers come in order"
        response, read = entity_reader(response_type)(frame, size)
        assert size + read == len(frame), f"{len(frame) - size - read} bytes left over"
        return response

    def peek(self) -> None:
        """Wait until a response begins to come, and read nothing of it."""
        assert self._socket.recv(1, socket.MSG_PEEK), "an answer comes"

    def forget(self, correlation_id: int) -> None:
        """Forget a request that has no response: Produce with acks=0."""
        del self._expected[correlation_id]

    def write_frame(self, frame: bytes) -> None:
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise Disconnected(f"{len(parts)} of {size} bytes came")
            parts += part
        return bytes(parts)

    def advertised(self) -> dict[int, range]:
        """Return the versions that the broker says it supports, by API key."""
        if self._advertised is None:
            response = self.send(
                Api.API_VERSIONS,
                3,
                client_software_name=CLIENT_ID,
                client_software_version="1",
            )
            assert response.error_code == Code.NONE
            self._advertised = {
                int(each.api_key): range(each.min_version, each.max_version + 1)
                for each in response.api_keys
            }
        return self._advertised

    def _check_advertised(self, api_key: int, version: int) -> None:
        """Skip a case whose version the broker doesn't advertise, or fail on a complete broker."""
        if api_key == Api.API_VERSIONS:
            return
        if version not in self.advertised().get(api_key, range(0)):
            reason = f"{Api(api_key).name} v{version} is not advertised by this broker"
            assert not self._complete, reason
            pytest.skip(reason)
