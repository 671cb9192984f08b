"""Describe the HTTP API as an OpenAPI document, from the same definitions that serve it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

from streams.queries.endpoint_client import (
    AGE_HEADER,
    LAG_HEADER,
    MORE_HEADER,
    PARTITIONS_HEADER,
    POSITION_HEADER,
)
from streams.queries.http_parameters import ParametersByName, QueryParameter
from streams.queries.http_problems import PROBLEM_TYPE
from streams.version import VERSION

ROWS_TYPE = "application/x-ndjson"
JSON_TYPE = "application/json"


class EndpointDescription(NamedTuple):
    """Represents one path of the API: what it returns, and by which parameters.

    `problems` are the statuses of errors besides those that every path has.
    """

    path: str
    summary: str
    media_type: str
    schema: dict[str, Any]
    parameters: ParametersByName = MappingProxyType({})
    problems: Sequence[HTTPStatus] = ()
    has_rows: bool = False
    has_position: bool = False


_TEXT = {"type": "string"}
_TIME_MS = {"type": "integer", "description": "Milliseconds since 1970, in UTC."}
_SCHEMAS = {
    "Problem": {
        "type": "object",
        "description": "Says what is wrong, and what to do (RFC 9457).",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": _TEXT,
            "title": _TEXT,
            "status": {"type": "integer"},
            "detail": _TEXT,
        },
    },
    "Row": {
        "type": "object",
        "description": "One line for each row. Times are there where the kind of store has them.",
        "required": ["key", "value"],
        "properties": {
            "key": {},
            "value": {},
            "timestamp_ms": _TIME_MS,
            "start_ms": _TIME_MS,
            "end_ms": _TIME_MS,
        },
    },
    "PartitionResult": {
        "type": "object",
        "description": "One line for each partition, with `scope=local`.",
        "required": ["partition", "result"],
        "properties": {"partition": {"type": "integer", "minimum": 0}, "result": {}},
    },
    "Stores": {
        "type": "object",
        "required": ["stores"],
        "properties": {
            "stores": {"type": "array", "items": {"$ref": "#/components/schemas/Store"}}
        },
    },
    "Store": {
        "type": "object",
        "required": ["name", "kind", "key_serde", "value_serde", "hosts"],
        "properties": {
            "name": _TEXT,
            "kind": {"type": "string", "enum": ["key_value", "window", "session", "versioned"]},
            "key_serde": _TEXT,
            "value_serde": _TEXT,
            "hosts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["address", "partition", "role"],
                    "properties": {
                        "address": _TEXT,
                        "partition": {"type": "integer", "minimum": 0},
                        "role": {"type": "string", "enum": ["active", "standby"]},
                        "lag": {
                            "type": ["integer", "null"],
                            "minimum": 0,
                            "description": "Of the standbys of the worker that is asked: how many "
                            "offsets each is behind its changelog, null if that is not known.",
                        },
                    },
                },
            },
        },
    },
}
_ANSWER_HEADERS = {
    POSITION_HEADER: {
        "description": "What the store had taken in of its inputs: TOPIC-PARTITION:OFFSET,... Of a "
        "range that is streamed: at its beginning.",
        "schema": _TEXT,
    },
    AGE_HEADER: {
        "description": "The ms for which something newer may have been committed elsewhere.",
        "schema": {"type": "integer", "minimum": 0},
    },
    LAG_HEADER: {
        "description": "How many offsets a standby that has answered was behind; 0 if none, and "
        "not there if it is not known.",
        "schema": {"type": "integer", "minimum": 0},
    },
    PARTITIONS_HEADER: {"description": "The partitions that were read.", "schema": _TEXT},
}
_ROW_HEADERS = {
    **_ANSWER_HEADERS,
    MORE_HEADER: {
        "description": "1 if there are more rows than the limit. Not there if the range is "
        "streamed: all rows follow, or the connection ends before the response does.",
        "schema": {"type": "string", "enum": ["0", "1"]},
    },
}
_PROBLEMS = {
    HTTPStatus.BAD_REQUEST: "The request is wrong.",
    HTTPStatus.UNAUTHORIZED: "The query_token is missing or wrong.",
    HTTPStatus.NOT_FOUND: "There is no such store, key or query.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The function of the query has raised an error.",
    HTTPStatus.SERVICE_UNAVAILABLE: "It can't be answered now; try again after Retry-After.",
}

_PATH_PARTS = {
    "name": "The store's name.",
    "query": "The query's name.",
    "key": "The key: text where the serde of keys is `string`, and JSON where it is another; or "
    "its bytes, by `format`. It may be empty, and have slashes.",
}
_COMMON_PROBLEMS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.SERVICE_UNAVAILABLE,
)


def describe_api(
    endpoints: Sequence[EndpointDescription],
    store_names: Sequence[str],
    query_names: Sequence[str],
    *,
    has_token: bool,
) -> dict[str, Any]:
    """Return the OpenAPI document of the endpoints, for the stores and queries that there are."""
    parts: dict[str, dict[str, Any]] = {
        "name": {**_TEXT, "enum": [*store_names]},
        "key": _TEXT,
        "query": {**_TEXT, "enum": [*query_names]},
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Millrace queries",
            "version": VERSION,
            "description": "Reads the stores of an application: committed values only.",
        },
        "paths": {
            each.path: {"get": _describe_endpoint(each, parts)}
            for each in endpoints
            if query_names or "{query}" not in each.path
        },
        "components": {"schemas": _SCHEMAS},
    }
    if has_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _describe_endpoint(
    endpoint: EndpointDescription, parts: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the operation of a path; `parts` has the schemas of what paths name."""
    ok: dict[str, Any] = {
        "description": endpoint.summary,
        "content": {endpoint.media_type: {"schema": endpoint.schema}},
    }
    if endpoint.has_rows:
        ok["headers"] = _ROW_HEADERS
    elif endpoint.has_position:
        ok["headers"] = _ANSWER_HEADERS
        ok["content"][ROWS_TYPE] = {"schema": {"$ref": "#/components/schemas/PartitionResult"}}
    statuses = [*_COMMON_PROBLEMS, *endpoint.problems]
    problems = {str(int(status)): _describe_problem(status) for status in statuses}
    if "{key}" in endpoint.path:
        problems[str(int(HTTPStatus.NOT_FOUND))]["headers"] = _ANSWER_HEADERS
    return {
        "summary": endpoint.summary,
        "parameters": [
            *(
                _describe_path_part(part, schema)
                for part, schema in parts.items()
                if f"{{{part}}}" in endpoint.path
            ),
            *(_describe_parameter(each) for each in endpoint.parameters.values()),
        ],
        "responses": {"200": ok, **problems},
    }


def _describe_path_part(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the parameter for a part of a path."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _PATH_PARTS[name],
        "schema": schema,
    }


def _describe_parameter(parameter: QueryParameter) -> dict[str, Any]:
    """Return a parameter of the URL's query."""
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _describe_problem(status: HTTPStatus) -> dict[str, Any]:
    """Return the response of an error."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": _PROBLEMS[status], "content": {PROBLEM_TYPE: {"schema": schema}}}
