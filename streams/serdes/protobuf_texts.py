"""Find texts of Protobuf messages that are no UTF-8, which proto2 takes.

Protobuf for Python then has the bytes in a field of texts, and Java a text with U+FFFD. proto3
refuses such a message itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias

from state.shown_values import quote_value
from streams.serdes.protobuf_evolution import ProtobufMismatch

PlaceInMessage: TypeAlias = str
Text: TypeAlias = Any
Key: TypeAlias = Any
Value: TypeAlias = Any

_CHECKED_SYNTAX = "proto3"


def create_text_check(descriptors: Collection[Any]) -> Callable[[Any], None] | None:
    """Return a function that raises ProtobufMismatch for a message with a text that is no UTF-8.

    `descriptors` are those of the message and of all that it may hold. None if Protobuf checks all
    of their texts.
    """
    if not any(_has_unchecked_text(each) for each in descriptors):
        return None

    def check_texts(message: Any) -> None:
        for path, text in _list_texts(message, "value"):
            if type(text) is bytes:
                raise ProtobufMismatch(
                    f"{path}: the text is no UTF-8, got {quote_value(text)}: declare bytes"
                )

    return check_texts


def _has_unchecked_text(descriptor: Any) -> bool:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    if not any(each.type == each.TYPE_STRING for each in descriptor.fields):
        return False
    syntax = FileDescriptorProto.FromString(descriptor.file.serialized_pb).syntax
    return bool(syntax != _CHECKED_SYNTAX)


def _list_texts(message: Any, path: str) -> Iterator[tuple[PlaceInMessage, Text]]:
    """Yield the texts that are set in a message, with their places."""
    for field, value in message.ListFields():
        place = f"{path}.{field.name}"
        if field.message_type and field.message_type.GetOptions().map_entry:
            for key, held in _list_map_entries_or_refuse(value, place):
                if hasattr(held, "ListFields"):
                    yield from _list_texts(held, f"{place}[{key!r}]")
                elif field.message_type.fields_by_name["value"].type == field.TYPE_STRING:
                    yield f"{place}[{key!r}]", held
        elif field.type == field.TYPE_STRING or field.message_type:
            several = value if field.is_repeated else [value]
            for index, held in enumerate(several):
                part = f"{place}[{index}]" if field.is_repeated else place
                if field.message_type:
                    yield from _list_texts(held, part)
                else:
                    yield part, held


def _list_map_entries_or_refuse(entries: Any, field_path: str) -> list[tuple[Key, Value]]:
    """Return the entries of a map, whose keys Protobuf for Python decodes itself."""
    try:
        return list(entries.items())
    except UnicodeDecodeError as error:
        raise ProtobufMismatch(f"{field_path}: a key is no UTF-8: {error}: declare bytes") from None
