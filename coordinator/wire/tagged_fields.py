"""Skip the tagged fields that end every struct of a flexible version, and remove unknown ones.

A newer client may send a field that our version of a request does not have: Kafka skips it
(KIP-482), kio refuses the whole request. So the walk before kio (see `array_limits`) checks the
tags. An unknown one ends it with UnknownTag, and the request is walked a second time, to remove
such fields. Fields inside a tagged struct are not checked: only replicas send one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field
from typing import Any, NamedTuple, TypeAlias

NextPosition: TypeAlias = int  # of the byte after what was read
# How many array elements the rest of a request may have: one number, in a list so that each step
# can lower it.
ElementBudget = list[int]
# Takes a frame and the position of an entity in it; returns the position behind it.
Walk = Callable[[bytes, int, ElementBudget], int]
# Takes the tags that a struct has; returns the walk over its tagged fields.
CreateTagWalk = Callable[[frozenset[int]], Walk]

_VARINT_BYTES_MAX = 5


class _TaggedField(NamedTuple):
    """Represents where a tagged field is in a frame, from its tag on."""

    tag: int
    start: int
    end: int


class UnknownTag(Exception):
    """Signals a well-formed request with a tagged field that kio can't read."""


class FrameReplacement(NamedTuple):
    """Describes bytes that replace those between two positions of a frame."""

    start: int
    end: int
    replacement: bytes


def list_known_tags(fields: tuple[Field[Any], ...]) -> frozenset[int]:
    """Return the tags of an entity's fields."""
    return frozenset(field.metadata["tag"] for field in fields if "tag" in field.metadata)


def skip_tags(frame: bytes, position: int) -> NextPosition:
    """Return the position behind a header's tagged fields, known or not."""
    if frame[position] == 0:
        return position + 1
    return _read_tagged_fields(frame, position)[1]


def create_strict_tag_walk(known: frozenset[int]) -> Walk:
    """Create a walk over tagged fields that raises UnknownTag for one that is not known."""

    def walk_known_tags(frame: bytes, position: int, budget: ElementBudget) -> int:
        if frame[position] == 0:  # hardly any client sends tagged fields
            return position + 1
        tags, end = _read_tagged_fields(frame, position)
        for tag, _, _ in tags:
            if tag not in known:
                raise UnknownTag(f"tag {tag}")
        return end

    return walk_known_tags


def create_collecting_tag_walks(replacements: list[FrameReplacement]) -> CreateTagWalk:
    """Create walks over tagged fields that append the removal of unknown ones to `replacements`."""

    def create_tag_walk(known: frozenset[int]) -> Walk:
        def walk_and_collect(frame: bytes, position: int, budget: ElementBudget) -> int:
            tags, end = _read_tagged_fields(frame, position)
            kept = [frame[each.start : each.end] for each in tags if each.tag in known]
            if len(kept) < len(tags):
                # A struct has fewer than 128 tags, so their count is one byte.
                replacements.append(
                    FrameReplacement(position, end, bytes([len(kept)]) + b"".join(kept))
                )
            return end

        return walk_and_collect

    return create_tag_walk


def apply_replacements(replacements: list[FrameReplacement], frame: bytes, position: int) -> bytes:
    """Return the frame from a position on, with these replacements made."""
    pieces = []
    for cut in replacements:
        pieces += [frame[position : cut.start], cut.replacement]
        position = cut.end
    return b"".join([*pieces, frame[position:]])


def _read_tagged_fields(frame: bytes, position: int) -> tuple[list[_TaggedField], NextPosition]:
    """Read the tag, start and end of each tagged field, and the position behind the last.

    Raises: ValueError if a tag comes twice or not in order, or if the frame ends within a field.
    """
    count, position = read_unsigned_varint(frame, position)
    found = []
    last = -1
    for _ in range(count):
        start = position
        tag, position = read_unsigned_varint(frame, position)
        size, position = read_unsigned_varint(frame, position)
        position += size
        if tag <= last or position > len(frame):
            raise ValueError(f"tag {tag} after {last}, up to {position} of {len(frame)} bytes")
        last = tag
        found.append(_TaggedField(tag, start, position))
    return found, position


def read_unsigned_varint(frame: bytes, position: int) -> tuple[int, NextPosition]:
    """Read an unsigned varint; return the number and the position behind it.

    Raises: ValueError for one of more than 5 bytes.
    """
    value = 0
    for i in range(_VARINT_BYTES_MAX):
        byte = frame[position + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, position + i + 1
    raise ValueError(f"a varint of more than {_VARINT_BYTES_MAX} bytes")
