"""Convert what fastavro has read by the writer's schema to the reader's schema, by Avro's rules.

A pair of schemas becomes one function, composed when the first message of the writer's schema is
read. A part that does not fit is an error of the messages that have it, as in Java: an empty array
fits whatever its elements were. Source: Avro's specification, Schema Resolution; Resolver of Avro
for Java 1.12.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from state.shown_values import quote_value
from streams.serdes.avro_defaults import create_default
from streams.serdes.avro_logical_types import PYTHON_TYPES, create_logical_reader
from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_schema import (
    NAMED,
    RECORDS,
    WIRE_FIELD,
    AvroField,
    AvroType,
    has_several_value_branches,
    name_wire_branch,
)
from streams.serdes.avro_unions import AvroOptions, create_branch_namer

Convert = Callable[[Any], Any]

_PROMOTIONS = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}


def create_resolver(writer: AvroType, reader: AvroType, options: AvroOptions) -> Convert:
    """Return the function that converts what fastavro read by `writer` to a value of `reader`.

    That function may change what it is given, and raises AvroMismatch with the place.
    """
    return _Resolver(options).resolve(writer, reader) or _return_unchanged


def _return_unchanged(raw: Any) -> Any:
    return raw


class _Resolver:
    """Creates the function that converts values of a writer's schema to a reader's.

    A record that contains itself finds its own conversion in `_records` before that is complete.
    """

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._records: dict[tuple[int, int], list[Convert]] = {}

    def resolve(self, writer: AvroType, reader: AvroType) -> Convert | None:
        if writer.kind == "union":
            return self._resolve_written_union(writer, reader)
        if reader.kind == "union":
            return self._resolve_to_union(writer, reader)
        if not _can_read_branch(writer, reader):
            return _create_refusal(writer, reader)
        if reader.kind in RECORDS:
            return self._resolve_record(writer, reader)
        if reader.kind == "array":
            return _create_array_resolver(self.resolve(_get_items(writer), _get_items(reader)))
        if reader.kind == "map":
            return _create_map_resolver(self.resolve(_get_items(writer), _get_items(reader)))
        if reader.kind == "enum":
            return _create_enum_resolver(writer, reader)
        convert = _find_promotion(writer.kind, reader.kind)
        if not reader.logical_type:
            return convert
        to_python = create_logical_reader(reader, passes_numbers=self._options.passes_numbers)
        return to_python if convert is None else lambda raw: to_python(convert(raw))

    def _resolve_written_union(self, writer: AvroType, reader: AvroType) -> Convert | None:
        """Resolve each branch of the writer's union; an error is one of its branch only."""
        if not has_several_value_branches(writer):
            some = next((each for each in writer.branches if each.kind != "null"), None)
            convert = None if some is None else self.resolve(some, reader)
            if all(each.kind != "null" for each in writer.branches):
                return convert
            convert_null = self.resolve(AvroType("null", "null"), reader)
            return _create_nullable_resolver(convert, convert_null)
        by_name = {
            name_wire_branch(writer, index): self._resolve_written_branch(writer, branch, reader)
            or _return_unchanged
            for index, branch in enumerate(writer.branches)
            if branch.kind != "null"
        }
        convert_null = self.resolve(AvroType("null", "null"), reader)

        def resolve_branch(raw: Any) -> Any:
            if raw is None:
                return None if convert_null is None else convert_null(None)
            name, held = raw
            return by_name[name](held[WIRE_FIELD])

        return resolve_branch

    def _resolve_written_branch(
        self, union: AvroType, branch: AvroType, reader: AvroType
    ) -> Convert | None:
        """Resolve a written branch of a union; a record only to a branch whose name matches.

        A name without its namespace fits if no other record of the writer's union has it.
        """
        records = [each for each in union.branches if each.kind in RECORDS]
        if branch not in records or len(records) == 1:
            return self.resolve(branch, reader)
        same_name = [each for each in records if _has_simple_name(branch, each)]
        fits = [_has_full_name, *([_has_simple_name] if len(same_name) == 1 else [])]
        for has_name in fits:
            for each in reader.branches or [reader]:
                if each.kind in RECORDS and has_name(branch, each):
                    return self._resolve_to_branch(branch, reader, each)
        return _create_refusal(branch, reader, " of a union")

    def _resolve_to_branch(
        self, writer: AvroType, reader: AvroType, branch: AvroType
    ) -> Convert | None:
        """Resolve to a branch of a reader's union, or to the reader, and name it if needed."""
        convert = self.resolve(writer, branch)
        if branch is reader:
            return convert
        give_name = create_branch_namer(reader, reader.branches.index(branch), self._options)
        if give_name is None:
            return convert
        return give_name if convert is None else lambda raw: give_name(convert(raw))

    def _resolve_to_union(self, writer: AvroType, reader: AvroType) -> Convert | None:
        """Resolve to the branch of the reader's union that fits, and give it its name if needed."""
        index = self._find_branch_index(writer, reader.branches)
        if index is None:
            return _create_refusal(writer, reader)
        return self._resolve_to_branch(writer, reader, reader.branches[index])

    def _find_branch_index(self, writer: AvroType, branches: Sequence[AvroType]) -> int | None:
        """Return the branch of a reader's union for a type: the same one, or one it promotes to."""
        same_kind = [i for i, each in enumerate(branches) if each.kind == writer.kind]
        if writer.kind in NAMED:
            return _find_index_of_named_branch(writer, branches, same_kind)
        if same_kind:
            return same_kind[0]
        for index, each in enumerate(branches):
            if (writer.kind, each.kind) in _PROMOTIONS:
                return index
        return None

    def _resolve_record(self, writer: AvroType, reader: AvroType) -> Convert | None:
        key = (id(writer), id(reader))
        if key in self._records:
            later = self._records[key]
            return lambda raw: later[0](raw)
        self._records[key] = []
        convert = self._create_record_conversion(writer, reader)
        self._records[key].append(convert or _return_unchanged)
        return convert

    def _create_record_conversion(self, writer: AvroType, reader: AvroType) -> Convert | None:
        steps: list[tuple[str, str, Convert | None]] = []
        defaults: list[tuple[str, Callable[[], Any]]] = []
        by_name = {each.name: each for each in writer.fields}
        takes_aliases = _has_full_name(writer, reader)
        for each in reader.fields:
            written = by_name.get(each.name)
            if written is None and takes_aliases:
                written = next((by_name[a] for a in each.aliases if a in by_name), None)
            if written is not None:
                convert = self.resolve(written.type, each.type)
                steps.append((written.name, each.name, convert))
            elif each.has_default:
                make = create_default(each.type, each.default)
                finish = self.resolve_default(each.type)
                defaults.append((each.name, _create_converted_default(make, finish)))
            else:
                return _create_missing_field_refusal(each, writer, reader)
        if defaults or [each.name for each in writer.fields] != [new for _, new, _ in steps]:
            return _create_rebuilding(steps, defaults)
        converts = [(name, convert) for name, _, convert in steps if convert is not None]
        return _create_conversion_in_place(converts) if converts else None

    def resolve_default(self, schema: AvroType) -> Convert | None:
        """Return the conversion of a default, which is as fastavro reads it by its own schema."""
        return _Resolver(self._options).resolve(schema, schema)


def _find_index_of_named_branch(
    writer: AvroType, branches: Sequence[AvroType], same_kind: Sequence[int]
) -> int | None:
    """Return the branch of a named type: by its full name or an alias.

    A record is found by its name without the namespace too. One of another name, which is renamed
    without an alias, is taken only if both schemas have no other record, unlike in Java, which
    takes the first whose fields fit: a record must not become another one with the same fields.
    """
    for is_name in (_has_full_name, _has_simple_name):
        for index in same_kind:
            if is_name(writer, branches[index]):
                return index
        if writer.kind not in RECORDS:
            return None
    return same_kind[0] if len(same_kind) == 1 else None


def _create_converted_default(make: Callable[[], Any], finish: Convert | None) -> Callable[[], Any]:
    return make if finish is None else lambda: finish(make())


def _create_rebuilding(
    steps: Sequence[tuple[str, str, Convert | None]],
    defaults: Sequence[tuple[str, Callable[[], Any]]],
) -> Convert:
    """Return the conversion of a record whose fields have other names, or other ones beside."""

    def rebuild_record(raw: Any) -> Any:
        found, new = {}, ""
        try:
            for old, new, convert in steps:
                found[new] = raw[old] if convert is None else convert(raw[old])
            for new, make in defaults:
                found[new] = make()
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f".{new}") from None
        return found

    return rebuild_record


def _create_conversion_in_place(converts: Sequence[tuple[str, Convert]]) -> Convert:
    def convert_record(raw: Any) -> Any:
        name = ""
        try:
            for name, convert in converts:
                raw[name] = convert(raw[name])
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f".{name}") from None
        return raw

    return convert_record


def _create_nullable_resolver(
    convert: Convert | None, convert_null: Convert | None
) -> Convert | None:
    if convert is None and convert_null is None:
        return None

    def resolve_nullable(raw: Any) -> Any:
        chosen = convert_null if raw is None else convert
        return raw if chosen is None else chosen(raw)

    return resolve_nullable


def _create_array_resolver(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None

    def resolve_array(raw: Any) -> Any:
        index = 0
        try:
            for index, each in enumerate(raw):
                raw[index] = convert(each)
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f"[{index}]") from None
        return raw

    return resolve_array


def _create_map_resolver(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None

    def resolve_map(raw: Any) -> Any:
        key = ""
        try:
            for key, each in raw.items():
                raw[key] = convert(each)
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f"[{key!r}]") from None
        return raw

    return resolve_map


def _create_enum_resolver(writer: AvroType, reader: AvroType) -> Convert | None:
    """Return the conversion of an enum's symbols: one that the reader lacks is its default."""
    known = frozenset(reader.properties["symbols"])
    if known.issuperset(writer.properties["symbols"]):
        return None
    default = reader.properties.get("default")

    def resolve_symbol(raw: Any) -> Any:
        if raw in known:
            return raw
        if default is None:
            raise AvroMismatch(
                f"enum {reader.name} of the reader has no {quote_value(raw)} and no default"
            )
        return default

    return resolve_symbol


def _find_promotion(written: str, wanted: str) -> Convert | None:
    """Return the conversion of a promotion, as Java converts: to the nearest number."""
    match written, wanted:
        case ("int", "float") | ("long", "float"):
            return lambda raw: struct.unpack("f", struct.pack("f", raw))[0]
        case ("int", "double") | ("long", "double"):
            return float
        case "string", "bytes":
            return lambda raw: raw.encode()
        case "bytes", "string":
            return _decode_text
    return None


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise AvroMismatch(f"the bytes are no UTF-8, which a string is: {error}") from None


def _can_read_branch(writer: AvroType, reader: AvroType) -> bool:
    """Return whether the reader's type can be read from the writer's, apart from what they hold."""
    if writer.kind != reader.kind:
        return (writer.kind, reader.kind) in _PROMOTIONS
    if writer.kind in ("enum", "fixed") and not (
        _has_full_name(writer, reader) or _has_simple_name(writer, reader)
    ):
        return False
    if writer.kind == "fixed" and writer.properties["size"] != reader.properties["size"]:
        return False
    return not _is_rescaled(writer, reader)


def _is_rescaled(writer: AvroType, reader: AvroType) -> bool:
    """Return whether both are decimals of different scales, which Avro's rules don't match."""
    if writer.logical_type != "decimal" or reader.logical_type != "decimal":
        return False
    return bool(writer.properties.get("scale", 0) != reader.properties.get("scale", 0))


def _has_full_name(writer: AvroType, reader: AvroType) -> bool:
    return writer.name == reader.name or writer.name in reader.aliases


def _has_simple_name(writer: AvroType, reader: AvroType) -> bool:
    return writer.simple_name == reader.simple_name


def _create_refusal(writer: AvroType, reader: AvroType, place: str = "") -> Convert:
    def refuse(_: Any) -> NoReturn:
        what = f"{_describe_schema(writer)}{place}"
        raise AvroMismatch(f"{what} was written, which is not {_describe_schema(reader)}")

    return refuse


def _create_missing_field_refusal(field: AvroField, writer: AvroType, reader: AvroType) -> Convert:
    def refuse(_: Any) -> NoReturn:
        raise AvroMismatch(
            f"{reader.name} needs it, and {writer.name} that was written has no such field",
            f".{field.name}",
        )

    return refuse


def _describe_schema(schema: AvroType) -> str:
    if schema.kind == "union":
        return f"a union of {', '.join(map(_describe_schema, schema.branches)) or 'nothing'}"
    if schema.kind in NAMED:
        size = f" of {schema.properties['size']} bytes" if schema.kind == "fixed" else ""
        return f"{schema.kind} {schema.name}{size}"
    if schema.logical_type in PYTHON_TYPES:
        return f"{schema.kind} ({schema.logical_type})"
    return schema.kind


def _get_items(schema: AvroType) -> AvroType:
    assert schema.items is not None, schema
    return schema.items
