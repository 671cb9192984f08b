"""The tagged fields that end every struct of a flexible version, and those that we don't know.

A newer client may send a field that our version of a request does not have: Kafka skips it
(KIP-482), kio takes the whole request for broken. So the walk that comes before kio looks at the
tags. One that is not known ends it with UnknownTag, and the request is walked over once more, to
cut such fields out. Fields inside a tagged struct are not looked at: only replicas send one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field
from typing import Any, NamedTuple

# How many elements of arrays the rest of a request may have: a number that steps can change.
Budget = list[int]
# One step over a frame: from a position to the next.
Walk = Callable[[bytes, int, Budget], int]
# From the tags that a struct has to the step over its tagged fields.
OverTags = Callable[[frozenset[int]], Walk]

_VARINT_BYTES_MAX = 5


class UnknownTag(Exception):
    """The request is whole, but kio can't read it as it is."""


class Cut(NamedTuple):
    """What stands between two positions of a frame, to be replaced."""

    start: int
    end: int
    by: bytes


def tags_of(fields: tuple[Field[Any], ...]) -> frozenset[int]:
    """The tags of an entity's fields."""
    return frozenset(field.metadata["tag"] for field in fields if "tag" in field.metadata)


def past_tags(frame: bytes, at: int) -> int:
    """Over the tagged fields of a header, whatever they are."""
    if frame[at] == 0:
        return at + 1
    return _tagged(frame, at)[1]


def refusing(known: frozenset[int]) -> Walk:
    """Over tagged fields that are all known. UnknownTag."""

    def walk(frame: bytes, at: int, budget: Budget) -> int:
        if frame[at] == 0:  # hardly any client sends some
            return at + 1
        found, end = _tagged(frame, at)
        for tag, _, _ in found:
            if tag not in known:
                raise UnknownTag(f"tag {tag}")
        return end

    return walk


def cutting(cuts: list[Cut]) -> OverTags:
    """Over tagged fields, adding to `cuts` those that are not known."""

    def over_tags(known: frozenset[int]) -> Walk:
        def walk(frame: bytes, at: int, budget: Budget) -> int:
            found, end = _tagged(frame, at)
            kept = [frame[start:stop] for tag, start, stop in found if tag in known]
            if len(kept) < len(found):
                # A struct has fewer than 128 tags, so their count is one byte.
                cuts.append(Cut(at, end, bytes([len(kept)]) + b"".join(kept)))
            return end

        return walk

    return over_tags


def without(cuts: list[Cut], frame: bytes, at: int) -> bytes:
    """The frame from `at` on, with the cuts made."""
    pieces = []
    for cut in cuts:
        pieces += [frame[at : cut.start], cut.by]
        at = cut.end
    return b"".join([*pieces, frame[at:]])


def _tagged(frame: bytes, at: int) -> tuple[list[tuple[int, int, int]], int]:
    """Each field as its tag, start and end, and what comes after the last. ValueError if a tag
    comes twice or not in order, or if the frame ends within a field."""
    count, at = unsigned_varint(frame, at)
    found = []
    last = -1
    for _ in range(count):
        start = at
        tag, at = unsigned_varint(frame, at)
        size, at = unsigned_varint(frame, at)
        at += size
        if tag <= last or at > len(frame):
            raise ValueError(f"tag {tag} after {last}, up to {at} of {len(frame)} bytes")
        last = tag
        found.append((tag, start, at))
    return found, at


def unsigned_varint(frame: bytes, at: int) -> tuple[int, int]:
    """The number and what comes after it. ValueError if it has more bits than 5 bytes hold."""
    value = 0
    for i in range(_VARINT_BYTES_MAX):
        byte = frame[at + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    raise ValueError(f"a varint of more than {_VARINT_BYTES_MAX} bytes")
