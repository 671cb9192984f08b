"""Test that a message is refused exactly where its reader's class takes a field for another value.

Any type of a field becomes any other, alone, in a part, in a list and in a map. What the reader's
class makes of the bytes without us is the oracle.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from streams.serdes.protobuf_evolution import ProtobufMismatch, create_comparison
from tests import edge_values as edges
from tests.proto_files import create_classes
from tests.unit.properties import examples


def integers(low: int, high: int) -> st.SearchStrategy[int]:
    near = sorted({each for each in (*edges.INTEGER_EDGES, low, high) if low <= each <= high})
    return st.sampled_from(near) | st.integers(low, high)


INT_32, INT_64 = integers(-(2**31), 2**31 - 1), integers(-(2**63), 2**63 - 1)
UINT_32, UINT_64 = integers(0, 2**32 - 1), integers(0, 2**64 - 1)
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), INT_32),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), INT_64),
    **dict.fromkeys(("uint32", "fixed32"), UINT_32),
    **dict.fromkeys(("uint64", "fixed64"), UINT_64),
    "bool": st.booleans(),
    "float": st.floats(width=32),
    "double": edges.floats | st.sampled_from(edges.NON_FINITE),
    "string": edges.texts,
    "bytes": st.binary(max_size=12),
    "Shade": st.sampled_from([0, 1, 2]),
}
SHADES = "enum Shade { A = 0; B = 1; C = 2; }", "enum Shade { A = 0; B = 1; }"
PLACES = ("{} f = 1;", "optional {} f = 1;", "repeated {} f = 1;", "oneof o {{ {} f = 1; }}")
PROTO_2 = ("optional {} f = 1;", "repeated {} f = 1;", "oneof o {{ {} f = 1; }}")


@cache
def create_class(kind: str, place: str, syntax: str, shade: str) -> Any:
    """Return a class with a field in itself and in parts of all sorts."""
    field, optional = place.format(kind), "optional" if syntax == "proto2" else ""
    parts = (
        f"{optional} Inner one = 2; repeated Inner several = 3; map<string, Inner> named = 4;"
        f"{optional} Outer next = 5;"
    )
    body = f"{shade} message Inner {{ {field} }} {field} {parts}"
    return create_classes(f'syntax = "{syntax}"; message Outer {{ {body} }}')["Outer"]


def find_field(message: Any) -> Any:
    return message.DESCRIPTOR.fields_by_name["f"]


def is_implicit(field: Any) -> bool:
    """Return whether a field is 0 where it is absent, and absent where it is 0."""
    return not (field.is_repeated or field.has_presence)


def see(message: Any) -> list[Any]:
    """Return the values of a field as one who asks for them sees them, none for an absent one."""
    field = find_field(message)
    is_one = is_implicit(field) or (not field.is_repeated and message.HasField("f"))
    values = [message.f] if is_one else list(message.f) if field.is_repeated else []
    return [each.encode() if isinstance(each, str) else each for each in values]


def are_meant_alike(written: Any, read: Any) -> bool:
    """Return whether what a reader sees of a field is what was written into it."""
    held, kept = see(written), see(read)
    if not held:
        return not any(kept) and (not kept or is_implicit(find_field(read)))
    if not kept:
        return not any(held) and is_implicit(find_field(written))
    if is_implicit(find_field(written)) and not any(held):  # nothing is in the bytes
        return not any(kept)
    return len(held) == len(kept) and all(map(are_equal, held, kept))


def are_equal(held: Any, kept: Any) -> bool:
    if isinstance(held, float) and math.isnan(held):
        return isinstance(kept, float) and math.isnan(kept)
    return bool(held == kept)


def fill(message: Any, values: list[Any]) -> None:
    if find_field(message).is_repeated:
        message.f.extend(values)
    elif values:
        message.f = values[0]


def list_parts(message: Any) -> list[Any]:
    """Return a message with those that it holds, and empty ones in the place of others."""
    several = message.several or [type(message.one)()]
    named = message.named["a"] if "a" in message.named else type(message.one)()
    return [message, message.one, message.next, *several, named]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Draw a writer's class, a reader's, and values of a field."""
    kind = draw(st.sampled_from(["Shade", *sorted(VALUES)]))
    kinds = [kind, draw(st.just(kind) | st.sampled_from(sorted(VALUES)))]
    syntaxes = [draw(st.sampled_from(["proto2", "proto3"])) for _ in range(2)]
    places = [draw(st.sampled_from(PROTO_2 if each == "proto2" else PLACES)) for each in syntaxes]
    classes = map(create_class, kinds, places, syntaxes, SHADES)
    values = draw(st.lists(VALUES[kinds[0]], max_size=3))
    return (*classes, values)


@examples(500)
@given(pairs(), st.sampled_from(["f", "one", "several", "named", "next"]))
def test_a_message_is_refused_exactly_where_a_field_would_change(
    pair: tuple[Any, Any, Any], holder: str
) -> None:
    writer, reader, values = pair
    message = writer()
    match holder:
        case "f":
            fill(message, values)
        case "one" | "next":
            getattr(message, holder).SetInParent()
            fill(getattr(message, holder), values)
        case "several":
            message.several.add()
            fill(message.several.add(), values)
        case "named":
            fill(message.named["a"], values)
    data = message.SerializeToString()
    try:
        written, read = writer.FromString(data), reader.FromString(data)
    except DecodeError:
        return  # refused already, as a text that is no UTF-8
    pairs_of_parts = zip(list_parts(written), list_parts(read), strict=True)
    is_kept = all(itertools.starmap(are_meant_alike, pairs_of_parts))
    compare = create_comparison(writer.DESCRIPTOR, reader.DESCRIPTOR)
    is_refused = False
    if compare is not None:
        try:
            compare(data)
        except ProtobufMismatch:
            is_refused = True
    assert is_refused == (not is_kept), f"{written} was read as {read}"
