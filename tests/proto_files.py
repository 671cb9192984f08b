"""Compile the text of small .proto files, as protoc does it, which pip has only with gRPC.

What it knows: syntax, package, import, messages and enumerations in each other, oneof, map,
optional, required and repeated, and the options `default` of a field and `packed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)

_TOKENS = re.compile(r'"[^"]*"|-?[\w.]+|[^\s\w]')
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in _FIELD.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}
_KNOWN = (struct_pb2, timestamp_pb2, wrappers_pb2)
"""What files may import of Protobuf itself: importing the modules registers them."""
_LABELS = {
    "optional": _FIELD.LABEL_OPTIONAL,
    "required": _FIELD.LABEL_REQUIRED,
    "repeated": _FIELD.LABEL_REPEATED,
}


def parse_proto(text: str, name: str = "messages.proto") -> Any:
    """Return the FileDescriptorProto of a file's text."""
    file = descriptor_pb2.FileDescriptorProto(name=name)
    tokens = iter(_TOKENS.findall(re.sub(r"//.*", "", text)))
    for token in tokens:
        match token:
            case "syntax":
                file.syntax = _read_statement(tokens)[-1].strip('"')
            case "package":
                file.package = "".join(_read_statement(tokens))
            case "import":
                file.dependency.append(_read_statement(tokens)[-1].strip('"'))
            case "message":
                _read_message(file.message_type.add(name=next(tokens)), tokens, file)
            case "enum":
                _read_enum(file.enum_type.add(name=next(tokens)), tokens)
            case _:
                raise ValueError(f"unexpected {token!r} in {name}")
    return file


def create_classes(text: str, imports: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the classes of a file's messages by their names in it, as Order and Order.Line.

    `imports` are the texts of the files that it imports, each after those that it imports itself.
    """
    pool = descriptor_pool.DescriptorPool()
    files = [parse_proto(each, name) for name, each in (imports or {}).items()]
    main = parse_proto(text)
    for known in _KNOWN:
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for file in (*files, main):
        pool.Add(file)
    found: dict[str, Any] = {}
    waiting = list(pool.FindFileByName(main.name).message_types_by_name.values())
    for each in waiting:
        waiting.extend(each.nested_types)
        name = each.full_name.removeprefix(f"{main.package}." if main.package else "")
        found[name] = message_factory.GetMessageClass(each)
    return found


def _read_statement(tokens: Iterator[str]) -> list[str]:
    """Return the tokens up to the next semicolon."""
    found = []
    while (token := next(tokens)) != ";":
        found.append(token)
    return found


def _read_message(message: Any, tokens: Iterator[str], file: Any) -> None:
    assert next(tokens) == "{"
    oneof: int | None = None
    while (token := next(tokens)) != "}" or oneof is not None:
        match token:
            case "}":
                oneof = None
            case "oneof":
                oneof = len(message.oneof_decl)
                message.oneof_decl.add(name=next(tokens))
                assert next(tokens) == "{"
            case "message":
                _read_message(message.nested_type.add(name=next(tokens)), tokens, file)
            case "enum":
                _read_enum(message.enum_type.add(name=next(tokens)), tokens)
            case "reserved":
                _read_statement(tokens)
            case "map":
                _read_map(message, _read_statement(tokens))
            case _:
                field = _read_field(message, [token, *_read_statement(tokens)])
                if oneof is not None:
                    field.oneof_index = oneof
                elif token == "optional" and file.syntax == "proto3":
                    field.proto3_optional = True
    for field in message.field:  # the oneofs of single fields come after the others
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _read_field(message: Any, tokens: list[str]) -> Any:
    label = _LABELS[tokens.pop(0)] if tokens[0] in _LABELS else _FIELD.LABEL_OPTIONAL
    kind, name, _, number, *options = tokens
    field = message.field.add(name=name, number=int(number), label=label)
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:  # a message or an enumeration, which the pool finds
        field.type_name = kind
    if "default" in options:
        field.default_value = options[options.index("default") + 2].strip('"')
    if "packed" in options:
        field.options.packed = options[options.index("packed") + 2] == "true"
    return field


def _read_map(message: Any, tokens: list[str]) -> None:
    _, key, _, value, _, name, _, number = tokens
    title = "".join(part.capitalize() for part in name.split("_"))
    entry = message.nested_type.add(name=f"{title}Entry")
    entry.options.map_entry = True
    _read_field(entry, [key, "key", "=", "1"])
    _read_field(entry, [value, "value", "=", "2"])
    message.field.add(
        name=name, number=int(number), label=_FIELD.LABEL_REPEATED, type_name=entry.name
    ).type = _FIELD.TYPE_MESSAGE


def _read_enum(enum: Any, tokens: Iterator[str]) -> None:
    assert next(tokens) == "{"
    while (token := next(tokens)) != "}":
        number = _read_statement(tokens)[1]
        enum.value.add(name=token, number=int(number))
