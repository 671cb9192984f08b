"""Can the arrays of a request be as long as they say? Asked before kio reads it.

kio makes room for a whole array before it reads the first element. Bytes that are no honest request
may say that there are 2 billion, and a process that can't have so much memory ends there and then,
without an exception. But an element takes a byte at least, so an array that says it has more
elements than there are bytes left is none. Kafka's generated readers refuse it in the same way.

An array that is as long as it says can do harm too: 20 MB of empty topic names would keep the
broker busy for two minutes and take 7 GB, and nobody else is served meanwhile. So all the arrays of
a request have no more than ELEMENTS_MAX elements in all. Kafka, with threads for others and a heap
with an end, has no such limit.

What has to be walked over is worked out once for each version of each request. Nothing is made of
the bytes, so the walk costs little: a step for each string and each array, one for all the fields
of a fixed size that stand in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from struct import Struct
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from coordinator.wire.tags import Budget, OverTags, Walk, refusing, tags_of, unsigned_varint

# Of a request: about a second's work at the most. A fetch of all partitions that one broker can
# reasonably have is a tenth of it.
ELEMENTS_MAX = 100_000

# From where an array starts to the number of its elements (-1: null) and to the first of them.
CountOf = Callable[[bytes, int], tuple[int, int]]

_INT16, _INT32 = Struct(">h"), Struct(">i")
_FIXED_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "uuid": 16,
    "float64": 8,
}


def walk_of(entity_type: Any, over_tags: OverTags = refusing) -> Walk:
    """From where a struct of this type starts in a frame to where it ends.

    The walk raises ValueError for an array that can't be or is one too many, or an error of the
    frame's end; and what `over_tags` raises. Tagged fields are passed over by their sizes: no array
    stands in one of a request.
    """
    flexible: bool = entity_type.__flexible__
    steps: list[Walk] = []
    fixed_bytes = 0
    for field in fields(entity_type):
        if "tag" in field.metadata:
            continue
        step = _field(field, flexible, over_tags)
        if isinstance(step, int):
            fixed_bytes += step
            continue
        if fixed_bytes:
            steps.append(_jump(fixed_bytes))
            fixed_bytes = 0
        steps.append(step)
    if fixed_bytes:
        steps.append(_jump(fixed_bytes))
    if flexible:
        steps.append(over_tags(tags_of(fields(entity_type))))
    return _one_after_another(steps)


def inner_type(declared: Any) -> tuple[Any, bool]:
    """What a field holds, and whether it holds many; whether it may be None doesn't matter."""
    if get_origin(declared) is UnionType:
        declared = next(kind for kind in get_args(declared) if kind is not NoneType)
    if get_origin(declared) is tuple:
        return inner_type(get_args(declared)[0])[0], True
    return declared, False


def _field(field: Field[Any], flexible: bool, over_tags: OverTags) -> Walk | int:
    """How to walk over a field; of one that has a fixed size, the size in bytes."""
    inner, is_array = inner_type(field.type)
    one = walk_of(inner, over_tags) if is_dataclass(inner) else _primitive(field, flexible)
    if not is_array:
        if is_dataclass(inner) and inner is not field.type:  # it may be None
            return _unless_absent(walk_of(inner, over_tags))
        return one
    count: CountOf = _compact_count if flexible else _count
    if get_origin(field.type) is not UnionType:
        count = _never_null(count, field.name)
    return _all_of(count, one) if callable(one) else _all_of_fixed_size(count, one)


def _never_null(count_of: CountOf, name: str) -> CountOf:
    """kio reads null for an array that can't be null, too."""

    def count_or_refuse(frame: bytes, at: int) -> tuple[int, int]:
        count, at = count_of(frame, at)
        if count < 0:
            raise ValueError(f"{name} is null")
        return count, at

    return count_or_refuse


def _unless_absent(one: Walk) -> Walk:
    """A struct that may be None has a byte before it, which is negative if it is None."""

    def walk(frame: bytes, at: int, budget: Budget) -> int:
        return at + 1 if frame[at] >= 0x80 else one(frame, at + 1, budget)

    return walk


def _primitive(field: Field[Any], flexible: bool) -> Walk | int:
    kind = field.metadata["kafka_type"]
    if kind in ("string", "bytes", "records"):
        if flexible:
            return _over_compact_bytes
        return _over_string if kind == "string" else _over_bytes
    return _FIXED_BYTES[kind]


def _one_after_another(steps: list[Walk]) -> Walk:
    def walk(frame: bytes, at: int, budget: Budget) -> int:
        for step in steps:
            at = step(frame, at, budget)
        return at

    return walk


def _jump(count: int) -> Walk:
    return lambda frame, at, budget: at + count


def _over_string(frame: bytes, at: int, budget: Budget) -> int:
    length: int = _INT16.unpack_from(frame, at)[0]
    return at + 2 + max(length, 0)


def _over_bytes(frame: bytes, at: int, budget: Budget) -> int:
    length: int = _INT32.unpack_from(frame, at)[0]
    return at + 4 + max(length, 0)


def _over_compact_bytes(frame: bytes, at: int, budget: Budget) -> int:
    length = frame[at]
    if length >= 0x80:
        length, at = unsigned_varint(frame, at)
        return at + length - 1
    return at + (length or 1)


def _count(frame: bytes, at: int) -> tuple[int, int]:
    count: int = _INT32.unpack_from(frame, at)[0]
    return count, at + 4


def _compact_count(frame: bytes, at: int) -> tuple[int, int]:
    count, at = unsigned_varint(frame, at)
    return count - 1, at


def _all_of(count_of: CountOf, one: Walk) -> Walk:
    def walk(frame: bytes, at: int, budget: Budget) -> int:
        count, at = count_of(frame, at)
        _spend(count, frame, at, budget)
        for _ in range(count):
            at = one(frame, at, budget)
        return at

    return walk


def _all_of_fixed_size(count_of: CountOf, size: int) -> Walk:
    def walk(frame: bytes, at: int, budget: Budget) -> int:
        count, at = count_of(frame, at)
        _spend(count, frame, at, budget)
        return at + max(count, 0) * size

    return walk


def _spend(count: int, frame: bytes, at: int, budget: Budget) -> None:
    if count <= 0:
        return
    if count > len(frame) - at:
        raise ValueError(f"an array of {count} elements in {len(frame) - at} bytes")
    budget[0] -= count
    if budget[0] < 0:
        raise ValueError(f"{-budget[0]} elements above the {ELEMENTS_MAX} of a request")
