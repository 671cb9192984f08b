"""Generate Avro schemas with values that they have, as the reader of a message gets them."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from tests import edge_values as edges

Draw = Callable[[st.SearchStrategy[Any]], Any]
SECOND = timedelta(seconds=1)


def round_to_float(number: float) -> float:
    """Return the number of 32 bits that is nearest."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.inf


def cut_to_milliseconds(value: Any) -> Any:
    return value.replace(microsecond=value.microsecond // 1000 * 1000, fold=0)


doubles = st.floats() | st.sampled_from([*edges.FLOAT_EDGES, *edges.NON_FINITE])
utc_times = st.datetimes(timezones=st.just(UTC)) | st.sampled_from(
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
local_times = st.datetimes().map(lambda at: at.replace(fold=0)) | st.just(datetime.max)  # noqa: DTZ901
LOGICAL: dict[str, tuple[dict[str, Any], st.SearchStrategy[Any]]] = {
    "date": ({"type": "int", "logicalType": "date"}, edges.dates | st.just(date.min)),
    "time-millis": (
        {"type": "int", "logicalType": "time-millis"},
        (edges.times | st.just(time.max)).map(cut_to_milliseconds),
    ),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, edges.times),
    "timestamp-millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        utc_times.map(cut_to_milliseconds),
    ),
    "timestamp-micros": ({"type": "long", "logicalType": "timestamp-micros"}, utc_times),
    "local-timestamp-millis": (
        {"type": "long", "logicalType": "local-timestamp-millis"},
        local_times.map(cut_to_milliseconds),
    ),
    "local-timestamp-micros": (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        local_times,
    ),
    "uuid": ({"type": "string", "logicalType": "uuid"}, edges.uuids | st.just(UUID(int=1))),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2},
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal((n < 0, _digits(n), -2))),
    ),
}
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1) | st.sampled_from([2**31 - 1, -(2**31), 0]),
    "long": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**63 - 1, 2**53 + 1, 2**31]),
    "float": doubles.map(round_to_float),
    "double": doubles,
    "string": edges.texts,
    "bytes": st.binary() | st.sampled_from([b"", b"\x00" * 300]),
}


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


@st.composite
def schemas(draw: Draw, depth: int = 3) -> Any:
    """Generate a schema whose named types have names of their own."""
    space = draw(st.sampled_from(["", "shop.v1."]))
    return _schema(draw, depth, map((space + "T{}").format, itertools.count()), in_union=False)


def _schema(draw: Draw, depth: int, names: Iterator[str], *, in_union: bool) -> Any:
    kinds = ["primitive", "logical", "enum", "fixed"]
    if depth:
        kinds += ["array", "map", "record", "record", *([] if in_union else ["union", "union"])]
    match draw(st.sampled_from(kinds)):
        case "primitive":
            return draw(st.sampled_from([*PRIMITIVES]))
        case "logical":
            return LOGICAL[draw(st.sampled_from([*LOGICAL]))][0]
        case "enum":
            return {"type": "enum", "name": next(names), "symbols": ["A", "B", "C"]}
        case "fixed":
            return {"type": "fixed", "name": next(names), "size": draw(st.integers(1, 3))}
        case "array":
            return {"type": "array", "items": _schema(draw, depth - 1, names, in_union=False)}
        case "map":
            return {"type": "map", "values": _schema(draw, depth - 1, names, in_union=False)}
        case "union":
            return _union(draw, depth, names)
    fields = [
        {"name": name, "type": _schema(draw, depth - 1, names, in_union=False)}
        for name in draw(st.sampled_from([[], ["a"], ["a", "b"], ["a", "b", "c"]]))
    ]
    return {"type": "record", "name": next(names), "fields": fields}


def _union(draw: Draw, depth: int, names: Iterator[str]) -> Any:
    """Generate a union: any type once, but for named ones."""
    found: list[Any] = []
    seen: set[str] = set()
    for _ in range(draw(st.integers(1, 5))):
        each = _schema(draw, depth - 1, names, in_union=True)
        kind = each if isinstance(each, str) else each.get("name", each["type"])
        if kind not in seen:
            seen.add(kind)
            found.append(each)
    return found


@st.composite
def explicit_values(draw: Draw, schema: Any) -> Any:
    """Generate a value of a schema in which each value of a union has the name of its branch.

    That is how fastavro takes values; those of logical types are numbers, bytes and texts.
    """
    if isinstance(schema, list):
        branch = draw(st.sampled_from(schema))
        name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
        return (name, draw(explicit_values(branch)))
    if isinstance(schema, str):
        return draw(PRIMITIVES[schema])
    if "logicalType" in schema:
        return draw(LOGICAL[schema["logicalType"]][1])
    match schema["type"]:
        case "enum":
            return draw(st.sampled_from(schema["symbols"]))
        case "fixed":
            return draw(st.binary(min_size=schema["size"], max_size=schema["size"]))
        case "array":
            return draw(st.lists(explicit_values(schema["items"]), max_size=3))
        case "map":
            return draw(st.dictionaries(edges.texts, explicit_values(schema["values"]), max_size=3))
    return {each["name"]: draw(explicit_values(each["type"])) for each in schema["fields"]}
