"""Find the fields of a Protobuf message that its reader's class takes for another value.

Bytes of Protobuf name fields by number only, and a reader makes of them what its own class says: an
int64 is cut to an int32, a sint32 that is read as int32 is another number, a text where a number is
declared is no field at all, and of two fields that became one oneof the last one counts. None of
that is an error to Protobuf. Which pairs of descriptors have such fields is found once for each
schema; only messages of such a pair are read twice, as the writer's class and as the reader's.

What evolution is meant for is none of it: a field that one of the two has not, an enumeration's new
number where the reader's is open, an integer that fits.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from state.shown_values import describe_value, quote_value

Compare = Callable[[bytes], None]
"""Raises ProtobufMismatch if the reader's class takes a message for another one."""


class ProtobufMismatch(ValueError):
    """Reports a field whose written value the reader's class would read as another."""


@dataclass(eq=False)
class _Pair:
    """Holds a message's descriptors of writer and reader, which may differ."""

    fields: list[tuple[Any, Any]] = dataclasses.field(default_factory=list)
    """Fields whose values are compared: the writer's and the reader's."""
    oneofs: list[tuple[str, list[Any]]] = dataclasses.field(default_factory=list)
    """The reader's oneofs, each with the writer's fields, of which it keeps one."""
    parts: list[tuple[Any, Any, _Pair]] = dataclasses.field(default_factory=list)
    """Fields of messages, or maps of them, in which something may differ."""


def create_comparison(writer: Any, reader: Any) -> Compare | None:
    """Return a function that compares a message as both read it; None if they read the same.

    `writer` and `reader` are descriptors of messages.
    """
    from google.protobuf.message_factory import GetMessageClass

    pairs: dict[tuple[str, str], _Pair] = {}
    pair = _pair_descriptors(writer, reader, pairs)
    _keep_parts_that_may_differ(pairs.values())
    if not (pair.fields or pair.oneofs or pair.parts):
        return None
    writer_class, reader_class = GetMessageClass(writer), GetMessageClass(reader)

    def compare(data: bytes) -> None:
        written, read = writer_class.FromString(data), reader_class.FromString(data)
        _refuse_differing_messages(pair, written, read, "value")

    return compare


def find_messages(descriptor: Any) -> Iterator[Any]:
    """Yield the descriptors of a message and of all that it may hold, each once."""
    seen, waiting = set(), [descriptor]
    while waiting:
        found = waiting.pop()
        if found.full_name not in seen:
            seen.add(found.full_name)
            yield found
            waiting.extend(each.message_type for each in found.fields if each.message_type)


def _pair_descriptors(writer: Any, reader: Any, pairs: dict[tuple[str, str], _Pair]) -> _Pair:
    """Return the pair of two descriptors, and add it and those of their parts to `pairs`."""
    names = (writer.full_name, reader.full_name)
    if names in pairs:
        return pairs[names]
    pair = pairs[names] = _Pair()
    for written in writer.fields:
        read = reader.fields_by_number.get(written.number)
        if read is None:
            continue
        if _hold_messages_in_same_way(written, read):
            parts = _pair_descriptors(written.message_type, read.message_type, pairs)
            pair.parts.append((written, read, parts))
        elif not _keeps_every_value(written, read):
            pair.fields.append((written, read))
    for oneof in reader.oneofs:
        numbers = [each.number for each in oneof.fields]
        several = [each for each in writer.fields if each.number in numbers]
        together = {each.containing_oneof for each in several}
        if len(several) > 1 and (len(together) > 1 or None in together):
            pair.oneofs.append((oneof.name, several))
    return pair


def _keep_parts_that_may_differ(pairs: Any) -> None:
    """Leave of the parts of each pair those in which something may differ, however deep."""
    differ = {id(pair) for pair in pairs if pair.fields or pair.oneofs}
    while True:
        more = {
            id(pair)
            for pair in pairs
            if id(pair) not in differ and any(id(part) in differ for _, _, part in pair.parts)
        }
        if not more:
            break
        differ |= more
    for pair in pairs:
        pair.parts = [each for each in pair.parts if id(each[2]) in differ]


def _hold_messages_in_same_way(written: Any, read: Any) -> bool:
    """Return whether both fields hold messages in the same way, whose own fields decide."""
    if not (written.type == read.type and written.message_type and read.message_type):
        return False
    if _is_map(written) != _is_map(read):
        return False
    if _is_map(written):
        keys = (each.message_type.fields_by_name["key"] for each in (written, read))
        return len({key.type for key in keys}) == 1
    return bool(written.is_repeated == read.is_repeated)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _keeps_every_value(written: Any, read: Any) -> bool:
    """Return whether a reader reads every value of a field as the writer meant it."""
    if written.type != read.type or written.is_repeated != read.is_repeated:
        return False
    if read.message_type:  # one is a map, or their keys differ
        return False
    if not (written.is_repeated or written.has_presence) and read.default_value:
        return False  # the writer's 0 is not in the bytes
    if read.enum_type is None or not read.enum_type.is_closed:
        return True
    numbers = set(read.enum_type.values_by_number)
    return written.enum_type.is_closed and numbers.issuperset(written.enum_type.values_by_number)


def _refuse_differing_messages(pair: _Pair, written: Any, read: Any, path: str) -> None:
    """Raise ProtobufMismatch for the first field that writer and reader do not have alike."""
    for oneof, fields in pair.oneofs:
        names = [each.name for each in fields if _list_values(each, written)]
        if len(names) > 1:
            raise ProtobufMismatch(
                f"{path}: {' and '.join(names)} are set, and oneof {oneof} keeps one"
            )
    for writer_field, reader_field in pair.fields:
        if not _have_same_values(writer_field, written, reader_field, read):
            raise ProtobufMismatch(
                f"{path}.{reader_field.name}: written as "
                f"{_describe_field_value(writer_field, written)}, and read as "
                f"{_describe_field_value(reader_field, read)}: a field of another type needs "
                "another number"
            )
    for writer_field, reader_field, parts in pair.parts:
        _refuse_differing_parts(
            parts, writer_field, written, reader_field, read, f"{path}.{reader_field.name}"
        )


def _refuse_differing_parts(
    parts: _Pair, writer_field: Any, written: Any, reader_field: Any, read: Any, path: str
) -> None:
    """Compare the messages that two fields hold, of which each has as many as the other."""
    if _is_map(writer_field):
        entries, found = getattr(written, writer_field.name), getattr(read, reader_field.name)
        if len(entries) != len(found):
            raise ProtobufMismatch(f"{path}: {len(entries)} entries written, {len(found)} read")
        for key in entries:
            held, kept = (
                _create_map_entry(writer_field, entries[key]),
                _create_map_entry(reader_field, found[key]),
            )
            _refuse_differing_messages(parts, held, kept, f"{path}[{quote_value(key)}]")
    elif writer_field.is_repeated:
        several = zip(
            getattr(written, writer_field.name), getattr(read, reader_field.name), strict=True
        )
        for index, (held, kept) in enumerate(several):
            _refuse_differing_messages(parts, held, kept, f"{path}[{index}]")
    elif written.HasField(writer_field.name):
        _refuse_differing_messages(
            parts, getattr(written, writer_field.name), getattr(read, reader_field.name), path
        )


def _create_map_entry(field: Any, value: Any) -> Any:
    """Create the message of a Protobuf map's entry, with a value and without a key."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(field.message_type)(value=value)


def _have_same_values(writer_field: Any, written: Any, reader_field: Any, read: Any) -> bool:
    """Return whether the values of a field are the same to its writer and its reader."""
    held, kept = _list_values(writer_field, written), _list_values(reader_field, read)
    is_implicit = not (writer_field.is_repeated or writer_field.has_presence)
    if not held and is_implicit:  # a 0, which is not in the bytes
        return (
            _are_equal([getattr(written, writer_field.name)], kept)
            if kept
            else not reader_field.default_value
        )
    if _are_equal(held, kept):
        return True
    if reader_field.is_repeated or reader_field.has_presence:
        return False
    return _are_equal(held, [getattr(read, reader_field.name)])


def _list_values(field: Any, message: Any) -> Sequence[Any]:
    """Return the values of a field that are in a message, none, one or several."""
    value = getattr(message, field.name)
    if _is_map(field):
        return sorted(((key, _to_comparable(value[key])) for key in value), key=repr)
    if field.is_repeated:
        return list(value)
    is_there = message.HasField(field.name) if field.has_presence else bool(value)
    return [value] if is_there else []


def _are_equal(held: Sequence[Any], kept: Sequence[Any]) -> bool:
    return len(held) == len(kept) and all(map(_is_equal, held, kept))


def _is_equal(held: Any, kept: Any) -> bool:
    if hasattr(held, "FromString") and hasattr(kept, "FromString"):
        kept = type(held).FromString(kept.SerializePartialToString())
    held, kept = _to_comparable(held), _to_comparable(kept)
    if isinstance(held, float) and isinstance(kept, float) and math.isnan(held):
        return math.isnan(kept)
    return bool(held == kept)


def _to_comparable(value: Any) -> Any:
    """Return a value so that a text equals its bytes, and a message its own."""
    if isinstance(value, str):
        return value.encode()
    serialize = getattr(value, "SerializePartialToString", None)
    return value if serialize is None else serialize(deterministic=True)


def _describe_field_value(field: Any, message: Any) -> str:
    values = _list_values(field, message)
    value = getattr(message, field.name)
    if not values and (field.is_repeated or field.has_presence):
        has_default = not field.is_repeated and value
        return f"its default, {describe_value(value)}" if has_default else "nothing"
    text = describe_value(values if field.is_repeated else value)
    return f"{text} (enum {field.enum_type.name})" if field.enum_type else text
