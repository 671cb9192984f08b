"""Define the parameters of queries over HTTP: they are read, and described, by one table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias
from urllib.parse import unquote_plus, unquote_to_bytes

import orjson

from streams.queries.endpoint_client import WAIT_MS_MAX
from streams.queries.http_texts import KEY_SERDES, ROW_FORMATS
from streams.queries.store_reads import ROWS_MAX

StoreName: TypeAlias = str
KeyText: TypeAlias = str
ParametersByName: TypeAlias = Mapping[str, "QueryParameter"]

_TIME_MS_MAX = 2**62
_DIGITS_MAX = 19
WAIT_MS = 2_000
"""The ms that a request waits for an answer unless it says otherwise."""
_POSITION = r"^([^,:\s]+-\d{1,10}:\d{1,19}(,|$))*$"

_PARTITIONS = r"^(\d{1,9}(,|$))*$"
_OBJECT = r"^\{[\s\S]*\}$"
_FORMS = {
    _OBJECT: "an object of JSON",
    _POSITION: "TOPIC-PARTITION:OFFSET, as in orders-0:42",
    _PARTITIONS: "numbers of partitions, as in 0,3",
}


@dataclass(frozen=True)
class QueryParameter:
    """Represents a parameter of a URL by its name, its JSON schema and what it does."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.schema.get("pattern", ""))

    def read_value(self, text: str) -> Any:
        """Return the value of a text. Raises ValueError if the schema does not have it."""
        schema = self.schema
        if schema["type"] == "integer":
            first, last = schema["minimum"], schema["maximum"]
            is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
            if not is_number or not first <= int(text) <= last:
                raise ValueError(f"{self.name}={text!r:.100} is no number from {first} to {last}")
            return int(text)
        if "enum" in schema and text not in schema["enum"]:
            raise ValueError(f"{self.name}={text!r:.100} is none of {', '.join(schema['enum'])}")
        if not self._pattern.search(text):
            form = _FORMS[schema["pattern"]]
            raise ValueError(f"{self.name}={text!r:.100} is not {form}")
        return text


def _build_choice_schema(*choices: str) -> dict[str, Any]:
    """Return the schema of a choice; the first one is the default."""
    return {"type": "string", "enum": list(choices), "default": choices[0]}


def _build_number_schema(first: int, last: int, **more: Any) -> dict[str, Any]:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": first, "maximum": last, **more}


def _index_parameters(*parameters: QueryParameter) -> ParametersByName:
    """Return parameters by their names."""
    return {each.name: each for each in parameters}


_TEXT = {"type": "string"}
_TIME_MS = _build_number_schema(0, _TIME_MS_MAX)

_COMMON = (
    QueryParameter(
        "format",
        "How keys and values are written: as JSON, or the bytes that their serdes make, in base64 "
        "(`bytes`) or in hex.",
        _build_choice_schema(*ROW_FORMATS),
    ),
    QueryParameter(
        "key-serde",
        "The serde that makes bytes of the keys of this request, and keys of the bytes of rows, if "
        "not the store's own.",
        {"type": "string", "enum": list(KEY_SERDES)},
    ),
    QueryParameter(
        "scope",
        "Which partitions are read: all of the store, or those of this worker alone.",
        _build_choice_schema("cluster", "local"),
    ),
    QueryParameter(
        "partitions",
        "Which partitions are read, with `scope=local`: all if it is empty.",
        {"type": "string", "pattern": _PARTITIONS},
    ),
    QueryParameter(
        "stale-ok-lag",
        "How many offsets behind its changelog a standby task may be that answers.",
        _TIME_MS,
    ),
    QueryParameter(
        "stale-ok-age",
        "How many ms ago a standby task that answers may have had everything that was committed.",
        _TIME_MS,
    ),
    QueryParameter(
        "at-least",
        "Which inputs the store has to have taken in: the Millrace-Position of an earlier answer, "
        "or offsets after records that were written, as TOPIC-PARTITION:OFFSET,...",
        {"type": "string", "pattern": _POSITION},
    ),
    QueryParameter(
        "wait-ms",
        "How many ms the answer may take.",
        _build_number_schema(0, WAIT_MS_MAX, default=WAIT_MS),
    ),
    QueryParameter(
        "limit",
        "How many rows are returned at most, as of one commit of each partition. A range of a "
        "key-value store has no limit without it, and is streamed.",
        _build_number_schema(1, ROWS_MAX),
    ),
    QueryParameter(
        "from-ms",
        "The first time at which windows start, in ms; of a versioned store the time from which "
        "the versions of a key are read.",
        _TIME_MS,
    ),
    QueryParameter(
        "to-ms",
        "The last time at which windows start, in ms; of a versioned store the last time at which "
        "a version was valid.",
        _TIME_MS,
    ),
    QueryParameter(
        "reverse",
        "1: from the last key to the first, and from the newest window or version to the oldest.",
        _build_choice_schema("0", "1"),
    ),
)
# What says which partitions are read, and as of when.
_TERMS = tuple(
    each for each in _COMMON if each.name in ("scope", "partitions", "at-least", "wait-ms")
)
QUERY_PARAMETERS = _index_parameters(
    QueryParameter(
        "arguments",
        'The arguments of the query by their names, as an object of JSON: {"count":10}.',
        {"type": "string", "pattern": _OBJECT, "default": "{}"},
    ),
    *_TERMS,
)
KEY_PARAMETERS = _index_parameters(
    *_COMMON,
    QueryParameter("as-of-ms", "The time in ms of which a version is read.", _TIME_MS),
)
RANGE_PARAMETERS = _index_parameters(
    *_COMMON,
    QueryParameter("from", "The first key.", _TEXT),
    QueryParameter("to", "The last key, which is included.", _TEXT),
    QueryParameter("after", "The last key of an earlier answer, to go on behind it.", _TEXT),
    QueryParameter("after-start-ms", "The start of the window or session with that key.", _TIME_MS),
    QueryParameter("after-end-ms", "The end of the session with that key.", _TIME_MS),
)


def read_parameters(query: bytes, known: ParametersByName) -> dict[str, Any]:
    """Return the values of the parameters that a URL's query gives. Raises ValueError.

    An unknown one, one that is there twice and one that is not UTF-8 are refused: whoever wrote
    them meant something by them.
    """
    values: dict[str, Any] = {}
    if not query:
        return values
    is_quoted = b"%" in query or b"+" in query
    for pair in filter(None, query.decode("ascii").split("&")):
        name, _, text = pair.partition("=")
        if is_quoted:
            name, text = unquote_plus(name, errors="strict"), unquote_plus(text, errors="strict")
        if name not in known:
            raise ValueError(f"unknown parameter {name!r:.100}; there are {sorted(known)}")
        if name in values:
            raise ValueError(f"the parameter {name!r} is there twice")
        values[name] = known[name].read_value(text)
    return values


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a query in a text. Raises ValueError."""
    try:
        found: dict[str, Any] = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"arguments={text!r:.100} is not an object of JSON: {error}") from None
    return found


def is_local_scope(query: bytes) -> bool:
    """Return whether a URL's query, which may be wrong, asks for the stores of one worker alone."""
    if b"%" not in query:
        return b"&scope=local&" in b"&%b&" % query
    pairs = (each.partition("=") for each in query.decode("latin-1").split("&"))
    return any(
        (unquote_plus(name), unquote_plus(text)) == ("scope", "local") for name, _, text in pairs
    )


def split_store_path(raw_path: bytes) -> tuple[StoreName, KeyText | None]:
    """Return the store and the key that a path /stores/NAME/KEY names; None if it has no key.

    Of /queries/NAME it is the query. The key is all that comes after the store's name, which may
    have slashes and be empty. Raises ValueError for what is not UTF-8: replacing it would read
    another key.
    """
    is_quoted = b"%" in raw_path
    _, _, name, *key = (
        (unquote_to_bytes(each) if is_quoted else each).decode() for each in raw_path.split(b"/", 3)
    )
    return name, key[0] if key else None
