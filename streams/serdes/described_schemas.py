"""Describe the schemas of Avro, JSON Schema and Protobuf as types that can be compared.

What a schema says beyond that, as the pattern of a text, is kept as `rules`: two schemas with other
rules are not called compatible. Messages start with the id of their schema, so that keys of another
schema have other bytes, whatever it says (`DescribedType.identity`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from streams.serdes.described_types import DescribedField, DescribedType

_AVRO_PRIMITIVES = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
_DIGEST_CHARS = 16
_AVRO_RULES = ("logicalType", "precision", "scale", "size")
_NOTES = frozenset(
    {"$schema", "$id", "id", "title", "description", "default", "examples", "$comment"}
    | {"definitions", "$defs", "deprecated", "readOnly", "writeOnly"}
)
"""Keywords of JSON Schema by which no message is refused."""
_OBJECT_RULES = frozenset({"type", "properties", "required", "additionalProperties"})


def describe_avro_schema(schema_text: Any) -> DescribedType | None:
    """Describe an Avro schema as JSON text; None for what is no such text."""
    return _describe_text(schema_text, lambda schema: _AvroDescriber().describe(schema, "", ()))


def describe_json_schema(schema_text: Any) -> DescribedType | None:
    """Describe a JSON Schema as text; None for what is no such text."""
    return _describe_text(schema_text, lambda schema: _JsonDescriber(schema).describe(schema, ()))


def _describe_text(
    schema_text: Any, describe: Callable[[Any], DescribedType]
) -> DescribedType | None:
    text = getattr(schema_text, "schema_str", schema_text)
    if not isinstance(text, str):
        return None
    try:
        schema = json.loads(text)
    except ValueError:
        schema = text  # the name of a primitive type of Avro, without quotes
    return replace(describe(schema), identity=_compute_digest(_format_sorted_json(schema).encode()))


class _AvroDescriber:
    """Describes Avro schemas; named ones are found again where they are referred to."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[Any, str]] = {}

    def describe(self, schema: Any, namespace: str, enclosing: tuple[str, ...]) -> DescribedType:
        """Describe a schema within a namespace and the records around it, by full names."""
        if isinstance(schema, list):
            items = tuple(self.describe(each, namespace, enclosing) for each in schema)
            return DescribedType(kind="union", items=items)
        if isinstance(schema, str):
            return self._describe_name(schema, namespace, enclosing)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._describe_record(schema, namespace, enclosing)
        if kind == "array":
            return DescribedType(
                kind="list", items=(self.describe(schema["items"], namespace, enclosing),)
            )
        if kind == "map":
            value = self.describe(schema["values"], namespace, enclosing)
            return DescribedType(kind="map", items=(_create_scalar("string"), value))
        if kind in ("enum", "fixed"):
            return self._describe_and_register_named(schema, namespace)
        found = self.describe(kind, namespace, enclosing)
        return replace(found, rules=_format_selected_keywords(schema, _AVRO_RULES))

    def _describe_name(
        self, name: str, namespace: str, enclosing: tuple[str, ...]
    ) -> DescribedType:
        if name in _AVRO_PRIMITIVES:
            return _create_scalar(name)
        full = _add_namespace(name, namespace)
        if full in enclosing:
            return DescribedType(kind="reference", name=_remove_namespace(full))
        if full in self._named:
            return self.describe(*self._named[full], enclosing)
        return DescribedType(kind="any", name=full)  # of another subject, which is not at hand

    def _describe_and_register_named(
        self, schema: Mapping[str, Any], namespace: str
    ) -> DescribedType:
        """Describe an enumeration or bytes of a fixed size."""
        full = _add_namespace(schema["name"], schema.get("namespace", namespace))
        self._named[full] = (schema, namespace)
        return DescribedType(
            kind="enum" if schema["type"] == "enum" else "scalar",
            name=_remove_namespace(full),
            symbols=tuple(schema.get("symbols", ())),
            must_be_named=True,
            former_names=_list_names_without_namespace(schema),
            rules=_format_selected_keywords(schema, _AVRO_RULES),
        )

    def _describe_record(
        self, schema: Mapping[str, Any], namespace: str, enclosing: tuple[str, ...]
    ) -> DescribedType:
        full = _add_namespace(schema["name"], schema.get("namespace", namespace))
        self._named[full] = (schema, namespace)
        inner = full.rpartition(".")[0]
        fields = {
            each["name"]: DescribedField(
                type=self.describe(each["type"], inner, (*enclosing, full)),
                has_default="default" in each,
                aliases=tuple(each.get("aliases", ())),
            )
            for each in schema["fields"]
        }
        return DescribedType(
            kind="record",
            name=_remove_namespace(full),
            fields=fields,
            must_be_named=True,
            former_names=_list_names_without_namespace(schema),
        )


class _JsonDescriber:
    """Describes JSON Schemas; `$ref` to a part of the same schema is followed."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def describe(self, schema: Any, enclosing: tuple[str, ...], name: str = "") -> DescribedType:
        """Describe a schema within the references around it."""
        if schema is True or schema == {}:
            return DescribedType(kind="any")
        if not isinstance(schema, dict):
            return _describe_by_schema_text(schema)
        if "$ref" in schema:
            return self._follow_reference(schema["$ref"], enclosing)
        rules = schema.keys() - _NOTES
        if "enum" in rules and rules <= {"enum", "type"}:
            symbols = tuple(_format_sorted_json(each) for each in schema["enum"])
            return DescribedType(kind="enum", name="enum", symbols=symbols)
        kinds = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kinds, list):
            items = tuple(
                self.describe({**schema, "type": each}, enclosing, name) for each in kinds
            )
            return DescribedType(kind="union", items=items)
        if kinds == "object" and rules <= _OBJECT_RULES:
            return self._describe_object(schema, enclosing, name)
        if kinds == "array" and rules <= {"type", "items"}:
            return DescribedType(
                kind="list", items=(self.describe(schema.get("items", True), enclosing),)
            )
        if isinstance(kinds, str) and kinds not in ("object", "array"):
            return replace(
                _create_scalar(kinds),
                rules=_format_selected_keywords(schema, sorted(rules - {"type"})),
            )
        return _describe_by_schema_text({key: schema[key] for key in rules})

    def _describe_object(
        self, schema: Mapping[str, Any], enclosing: tuple[str, ...], name: str
    ) -> DescribedType:
        more = schema.get("additionalProperties", True)
        if not isinstance(more, bool):
            return _describe_by_schema_text(schema)
        required = schema.get("required", [])
        fields = {
            each: DescribedField(
                type=self.describe(inner, enclosing),
                has_default=each not in required,
                is_optional=each not in required,
            )
            for each, inner in schema.get("properties", {}).items()
        }
        title = name or str(schema.get("title", "object"))
        return DescribedType(
            kind="record", name=title, fields=fields, unknown="keep" if more else "refuse"
        )

    def _follow_reference(self, reference: str, enclosing: tuple[str, ...]) -> DescribedType:
        if reference in enclosing:
            return DescribedType(kind="reference", name=reference)
        part = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            part = part.get(step) if isinstance(part, dict) else None
        if not reference.startswith("#") or part is None:
            return DescribedType(kind="any", name=reference)  # of another subject
        return self.describe(part, (*enclosing, reference), reference)


def describe_protobuf_message(descriptor: Any, former_names: Collection[str] = ()) -> DescribedType:
    """Describe a Protobuf message by its descriptor; its fields are known by their numbers."""
    found = _describe_message(descriptor, ())
    return replace(
        found,
        must_be_named=True,
        former_names=tuple(sorted(former_names)),
        identity=_compute_digest(descriptor.file.serialized_pb),
    )


def _describe_message(descriptor: Any, enclosing: tuple[str, ...]) -> DescribedType:
    if descriptor.full_name in enclosing:
        return DescribedType(kind="reference", name=descriptor.full_name)
    inside = (*enclosing, descriptor.full_name)
    fields = {
        str(each.number): DescribedField(
            type=_describe_protobuf_field(each, inside),
            has_default=not each.is_required,
            label=each.name,
        )
        for each in descriptor.fields
    }
    # What a message has beside its fields stays in it.
    return DescribedType(kind="record", name=descriptor.full_name, fields=fields, unknown="keep")


def _describe_protobuf_field(field: Any, enclosing: tuple[str, ...]) -> DescribedType:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        items = tuple(_describe_protobuf_field(entry[each], enclosing) for each in ("key", "value"))
        return DescribedType(kind="map", items=items)
    if field.message_type is not None:
        found = _describe_message(field.message_type, enclosing)
    else:
        found = _create_scalar(_PROTOBUF_TYPES[field.type])
    return DescribedType(kind="list", items=(found,)) if field.is_repeated else found


_PROTOBUF_TYPES = (
    "none",
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("group", "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
)
"""The names of the types of fields, by the numbers of FieldDescriptorProto.Type."""


def _compute_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS]


def _create_scalar(name: str) -> DescribedType:
    return DescribedType(kind="scalar", name=name)


def _describe_by_schema_text(schema: Any) -> DescribedType:
    """Describe a schema that is compared as a whole."""
    return DescribedType(kind="scalar", name="schema", rules=_format_sorted_json(schema))


def _add_namespace(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _remove_namespace(name: str) -> str:
    return name.rpartition(".")[2]


def _list_names_without_namespace(schema: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(_remove_namespace(each) for each in schema.get("aliases", ()))


def _format_selected_keywords(schema: Mapping[str, Any], names: Collection[str]) -> str:
    """Return some keywords of a schema as text; empty if it has none."""
    found = {name: schema[name] for name in names if name in schema}
    return _format_sorted_json(found) if found else ""


def _format_sorted_json(schema: Any) -> str:
    return json.dumps(schema, sort_keys=True)
