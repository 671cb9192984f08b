"""Check, before kio reads a request, that its arrays can be as long as they say.

kio allocates a whole array before it reads the first element. Malformed bytes may announce 2
billion elements, and a process that can't have so much memory ends there and then, without an
exception. But an element takes at least a byte, so an array with more elements than bytes left is
malformed. Kafka's generated readers refuse it in the same way.

A correct array can do harm too: 20 MB of empty topic names would keep the broker busy for two
minutes and take 7 GB, and no other client is served meanwhile. So the arrays of a request may have
at most ELEMENTS_MAX elements together. Kafka, with more threads and a bounded heap, has no such
limit.

A walk is a function that skips over an entity in a frame. It is composed once for each version of
each request, and builds nothing from the bytes, so it costs little: a step for each string and each
array, and one for each run of fields of a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from struct import Struct
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin

from coordinator.wire.tagged_fields import (
    CreateTagWalk,
    ElementBudget,
    NextPosition,
    Walk,
    create_strict_tag_walk,
    list_known_tags,
    read_unsigned_varint,
)

# Elements of all arrays of a request: about a second's work. A fetch of all partitions that one
# broker can reasonably have is a tenth of it.
ELEMENTS_MAX = 100_000

Count: TypeAlias = int
# Takes the position of an array; returns the number of its elements (-1: null) and the position of
# the first one.
ReadCount = Callable[[bytes, int], tuple[Count, NextPosition]]

_INT16, _INT32 = Struct(">h"), Struct(">i")
_FIXED_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint16": 2,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "uuid": 16,
    "float64": 8,
}


def create_array_limit_walk(
    entity_type: Any, create_tag_walk: CreateTagWalk = create_strict_tag_walk
) -> Walk:
    """Return a function that steps over an encoded entity and checks its arrays' lengths.

    It decodes nothing. It raises ValueError for an array that is longer than the frame or exceeds
    the budget, an error at the frame's end, and what the walk over its tags raises. Tagged fields
    are skipped by their sizes: in requests none of them holds an array.
    """
    flexible: bool = entity_type.__flexible__
    steps: list[Walk] = []
    fixed_bytes = 0
    for field in fields(entity_type):
        if "tag" in field.metadata:
            continue
        step = _create_field_walk(field, flexible, create_tag_walk)
        if isinstance(step, int):
            fixed_bytes += step
            continue
        if fixed_bytes:
            steps.append(_create_fixed_skip(fixed_bytes))
            fixed_bytes = 0
        steps.append(step)
    if fixed_bytes:
        steps.append(_create_fixed_skip(fixed_bytes))
    if flexible:
        steps.append(create_tag_walk(list_known_tags(fields(entity_type))))
    return _chain_walks(steps)


class ElementType(NamedTuple):
    """Represents the type that a field holds, without None, or of which it holds an array."""

    inner: Any
    is_array: bool


def find_element_type(declared: Any) -> ElementType:
    """Return the type that a field holds, without None, and whether it is an array of them."""
    if get_origin(declared) is UnionType:
        declared = next(kind for kind in get_args(declared) if kind is not NoneType)
    if get_origin(declared) is tuple:
        return ElementType(find_element_type(get_args(declared)[0]).inner, True)
    return ElementType(declared, False)


def _create_field_walk(
    field: Field[Any], flexible: bool, create_tag_walk: CreateTagWalk
) -> Walk | int:
    """Return the walk over a field, or its size in bytes if that is fixed."""
    inner, is_array = find_element_type(field.type)
    one = (
        create_array_limit_walk(inner, create_tag_walk)
        if is_dataclass(inner)
        else _create_primitive_walk(field, flexible)
    )
    if not is_array:
        if is_dataclass(inner) and inner is not field.type:  # it may be None
            return _create_optional_walk(create_array_limit_walk(inner, create_tag_walk))
        return one
    count: ReadCount = _read_compact_count if flexible else _read_count
    if get_origin(field.type) is not UnionType:
        count = _create_non_null_count_reader(count, field.name)
    if not callable(one):
        return _create_fixed_array_walk(count, one)
    fixed_bytes = _find_bytes_before_text(inner, create_tag_walk) if flexible else None
    return _create_array_walk(count, one, fixed_bytes)


def _find_bytes_before_text(entity_type: Any, create_tag_walk: CreateTagWalk) -> int | None:
    """Return the size of a flexible struct's fields up to its last, which is a text or bytes.

    None for any other struct.
    """
    if not is_dataclass(entity_type):
        return None
    untagged = [field for field in fields(entity_type) if "tag" not in field.metadata]
    steps = [_create_field_walk(field, True, create_tag_walk) for field in untagged]
    sizes = [step for step in steps[:-1] if isinstance(step, int)]
    is_such = len(sizes) == len(steps) - 1 and steps[-1] is _skip_compact_bytes
    return sum(sizes) if is_such else None


def _create_non_null_count_reader(read_count: ReadCount, name: str) -> ReadCount:
    """Wrap a count so that it raises ValueError for null, which kio would accept."""

    def read_non_null_count(frame: bytes, position: int) -> tuple[Count, NextPosition]:
        count, position = read_count(frame, position)
        if count < 0:
            raise ValueError(f"{name} is null")
        return count, position

    return read_non_null_count


def _create_optional_walk(one: Walk) -> Walk:
    """Create the walk over a struct that may be None, as the byte in front of it says."""

    def walk_if_present(frame: bytes, position: int, budget: ElementBudget) -> int:
        return position + 1 if frame[position] >= 0x80 else one(frame, position + 1, budget)

    return walk_if_present


def _create_primitive_walk(field: Field[Any], flexible: bool) -> Walk | int:
    kind = field.metadata["kafka_type"]
    if kind in ("string", "bytes", "records"):
        if flexible:
            return _skip_compact_bytes
        return _skip_string if kind == "string" else _skip_bytes
    return _FIXED_BYTES[kind]


def _chain_walks(steps: list[Walk]) -> Walk:
    def walk_struct(frame: bytes, position: int, budget: ElementBudget) -> int:
        for step in steps:
            position = step(frame, position, budget)
        return position

    return walk_struct


def _create_fixed_skip(size_bytes: int) -> Walk:
    return lambda frame, at, budget: at + size_bytes


def _skip_string(frame: bytes, position: int, budget: ElementBudget) -> NextPosition:
    length: int = _INT16.unpack_from(frame, position)[0]
    return position + 2 + max(length, 0)


def _skip_bytes(frame: bytes, position: int, budget: ElementBudget) -> NextPosition:
    length: int = _INT32.unpack_from(frame, position)[0]
    return position + 4 + max(length, 0)


def _skip_compact_bytes(frame: bytes, position: int, budget: ElementBudget) -> NextPosition:
    length = frame[position]
    if length >= 0x80:
        length, position = read_unsigned_varint(frame, position)
        return position + length - 1
    return position + (length or 1)


def _read_count(frame: bytes, position: int) -> tuple[Count, NextPosition]:
    count: int = _INT32.unpack_from(frame, position)[0]
    return count, position + 4


def _read_compact_count(frame: bytes, position: int) -> tuple[Count, NextPosition]:
    count, position = read_unsigned_varint(frame, position)
    return count - 1, position


def _create_array_walk(
    read_count: ReadCount, walk_element: Walk, bytes_before_text: int | None
) -> Walk:
    """Create the walk over an array; `bytes_before_text` is that of its elements' type, if any."""
    element_bytes = -1 if bytes_before_text is None else bytes_before_text + 2

    def walk_array(frame: bytes, position: int, budget: ElementBudget) -> int:
        count, position = read_count(frame, position)
        _check_and_count_elements(count, frame, position, budget)
        if element_bytes > 0 and count > 1:
            # Nearly all commits are without metadata: all texts are empty or null, a byte 1 or 0,
            # and there are no tagged fields, a byte 0. Then all elements have one size.
            end = position + count * element_bytes
            texts = frame[position + element_bytes - 2 : end : element_bytes]
            tags = frame[position + element_bytes - 1 : end : element_bytes]
            if len(tags) == count and not tags.strip(b"\0") and not texts.strip(b"\0\1"):
                return end
        for _ in range(count):
            position = walk_element(frame, position, budget)
        return position

    return walk_array


def _create_fixed_array_walk(read_count: ReadCount, element_bytes: int) -> Walk:
    def walk_array(frame: bytes, position: int, budget: ElementBudget) -> int:
        count, position = read_count(frame, position)
        _check_and_count_elements(count, frame, position, budget)
        return position + max(count, 0) * element_bytes

    return walk_array


def _check_and_count_elements(
    count: int, frame: bytes, position: int, budget: ElementBudget
) -> None:
    if count <= 0:
        return
    if count > len(frame) - position:
        raise ValueError(f"an array of {count} elements in {len(frame) - position} bytes")
    budget[0] -= count
    if budget[0] < 0:
        raise ValueError(f"{-budget[0]} elements above the {ELEMENTS_MAX} of a request")
