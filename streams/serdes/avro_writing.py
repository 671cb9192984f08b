"""Turn values into what fastavro writes, and refuse what would come back as another value.

A schema becomes one function, composed when its serde is connected. A part whose values fastavro
writes as they are is only checked, and not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from state.shown_values import quote_value
from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_scalars import create_scalar_writer, create_type_error
from streams.serdes.avro_schema import (
    RECORDS,
    WIRE_FIELD,
    AvroType,
    has_several_value_branches,
    name_wire_branch,
    name_wire_type,
)
from streams.serdes.avro_unions import (
    AvroOptions,
    can_write_value,
    create_branch_namer,
    group_by_type,
)

Convert = Callable[[Any], Any]


def create_wire_value_converter(schema: AvroType, options: AvroOptions) -> Convert:
    """Return the function that turns a value into what fastavro writes by the wire schema.

    It raises AvroMismatch, with the place, for a value that would come back as another one.
    """
    return _Preparer(options).prepare(schema)


class _Preparer:
    """Composes the functions of a schema; a record that contains itself finds its own there."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._records: dict[int, list[Convert]] = {}

    def prepare(self, schema: AvroType) -> Convert:
        match schema.kind:
            case "union":
                return self._prepare_union(schema)
            case "array":
                assert schema.items is not None
                return _create_array_preparer(self.prepare(schema.items))
            case "map":
                assert schema.items is not None
                return _create_map_preparer(self.prepare(schema.items))
            case "fastavro":
                return lambda value: value
            case kind if kind in RECORDS:
                return self._prepare_record(schema)
        return create_scalar_writer(schema, passes_numbers=self._options.passes_numbers)

    def _prepare_record(self, schema: AvroType) -> Convert:
        if id(schema) in self._records:
            later = self._records[id(schema)]
            return lambda value: later[0](value)
        self._records[id(schema)] = []
        steps = [(each.name, self.prepare(each.type)) for each in schema.fields]
        defaults = {each.name: each.default for each in schema.fields if each.has_default}
        found = _create_record_preparer(schema.name, steps, defaults)
        self._records[id(schema)].append(found)
        return found

    def _prepare_union(self, union: AvroType) -> Convert:
        prepares = [self.prepare(each) for each in union.branches]
        if has_several_value_branches(union):
            return _UnionPreparer(union, prepares, self._options).prepare
        for branch, prepare in zip(union.branches, prepares, strict=True):
            if branch.kind != "null":
                is_nullable = len(union.branches) > 1
                return _create_nullable_preparer(branch, prepare, is_nullable=is_nullable)
        return prepares[0]


def _create_nullable_preparer(branch: AvroType, prepare: Convert, *, is_nullable: bool) -> Convert:
    """Return the function for a union of one type and null.

    fastavro looks through a whole container to see which branch has it, unless it is told.
    """
    name = name_wire_type(branch)
    needs_name = branch.kind in ("array", "map", *RECORDS)

    def prepare_nullable(value: Any) -> Any:
        if value is None and is_nullable:
            return None
        return (name, prepare(value)) if needs_name else prepare(value)

    return prepare_nullable


def _create_record_preparer(
    record_name: str, steps: Sequence[tuple[str, Convert]], defaults: Mapping[str, Any]
) -> Convert:
    names = dict(steps).keys()

    def prepare_record(value: Any) -> Any:
        if type(value) is not dict:
            raise create_type_error(f"record {record_name}", value, "a dict")
        if value.keys() != names:
            raise _create_fields_error(record_name, names, value, defaults)
        found, name = {}, ""
        try:
            for name, prepare in steps:
                found[name] = prepare(value[name])
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f".{name}") from None
        return found

    return prepare_record


def _create_fields_error(
    record_name: str, names: Any, value: dict[Any, Any], defaults: Mapping[str, Any]
) -> AvroMismatch:
    """Return the error of a record that has other fields than its schema."""
    for name in value:
        if name not in names:
            return AvroMismatch(f"record {record_name} has no such field", f".{name}")
    missing = next(name for name in names if name not in value)
    if missing in defaults:
        return AvroMismatch(
            f"it is missing, and would come back as its default {defaults[missing]!r:.80}: give it",
            f".{missing}",
        )
    return AvroMismatch(f"record {record_name} needs it, and it is missing", f".{missing}")


def _create_array_preparer(prepare: Convert) -> Convert:
    def prepare_array(value: Any) -> Any:
        if type(value) is not list:
            raise create_type_error("array", value, "a list")
        found: list[Any] = []
        try:
            for each in value:
                found.append(prepare(each))
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f"[{len(found)}]") from None
        return found

    return prepare_array


def _create_map_preparer(prepare: Convert) -> Convert:
    def prepare_map(value: Any) -> Any:
        if type(value) is not dict:
            raise create_type_error("map", value, "a dict")
        found: dict[str, Any] = {}
        key = None
        try:
            for key, each in value.items():
                if type(key) is not str:
                    raise create_type_error("key of a map", key, "a str")
                found[key] = prepare(each)
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f"[{key!r}]") from None
        return found

    return prepare_map


def _index_branches_by_simple_name(union: AvroType) -> dict[str, int]:
    """Return the branches by their names without namespaces; -1 stands for several of one name."""
    found: dict[str, int] = {}
    for index, each in enumerate(union.branches):
        found[each.simple_name] = -1 if each.simple_name in found else index
    return found


class _UnionPreparer:
    """Finds the branch of a value, by its type or by the name that it has."""

    def __init__(self, union: AvroType, prepares: Sequence[Convert], options: AvroOptions) -> None:
        self._union, self._prepares, self._options = union, prepares, options
        self._groups = group_by_type(union, options)
        self._namers = [create_branch_namer(union, i, options) for i in range(len(union.branches))]
        self._wire_names = [name_wire_branch(union, i) for i in range(len(union.branches))]
        self._of_fastavro = [
            i for i, each in enumerate(union.branches) if each.is_added_logical_type
        ]
        self._by_name = {each.name: index for index, each in enumerate(union.branches)}
        if options.takes_simple_names:
            self._by_name |= _index_branches_by_simple_name(union)

    def prepare(self, value: Any) -> Any:
        if value is None and type(None) in self._groups:
            return None
        if type(value) is tuple:
            return self._prepare_pair(value)
        indexes = self._groups.get(type(value), self._of_fastavro)
        if len(indexes) == 1:
            return self._wrap_as_branch(indexes[0], self._prepares[indexes[0]](value))
        if not indexes:
            raise AvroMismatch(
                f"the union of {self._name_branches()} has no {type(value).__name__}, got "
                f"{quote_value(value)}"
            )
        if type(value) is dict:
            return self._prepare_unnamed_dict(value, indexes)
        refusals = []
        for index in indexes:
            try:
                return self._wrap_as_branch(index, self._prepares[index](value))
            except AvroMismatch as misfit:
                refusals.append(misfit.reason)
        raise AvroMismatch("; ".join(refusals))

    def _prepare_pair(self, pair: tuple[Any, ...]) -> Any:
        """Prepare a value that has the name of its branch, and needs it."""
        if len(pair) != 2 or type(pair[0]) is not str or pair[0] not in self._by_name:
            raise AvroMismatch(
                f"a pair has the name of its branch, one of {self._name_branches()}, got "
                f"{quote_value(pair)}"
            )
        name, value = pair
        index = self._by_name[name]
        if index < 0:
            raise AvroMismatch(
                f"{name} may be several of {self._name_branches()}: give type= as a dict of "
                "dataclasses by the full names of their records"
            )
        prepared = self._prepares[index](value)
        namer = self._namers[index]
        if self._options.names_records and (namer is None or namer(value) is value):
            raise AvroMismatch(
                f"{quote_value(value)} comes back without its name, since only {name} has it: "
                "give it as it is"
            )
        return self._wrap_as_branch(index, prepared)

    def _prepare_unnamed_dict(self, value: dict[Any, Any], indexes: Sequence[int]) -> Any:
        """Prepare a record, or a map, that has no name though several branches are dicts."""
        names = [self._union.branches[index].name for index in indexes]
        if self._options.names_records:
            raise AvroMismatch(
                f"a dict may be one of {', '.join(names)}, and comes back with its name: give "
                f"({names[0]!r}, {{...}}), or record_names=False"
            )
        fitting = [index for index in indexes if can_write_value(self._prepares[index], value)]
        if not fitting:
            self._prepares[indexes[0]](value)
        if len(fitting) > 1:
            found = [self._union.branches[index].name for index in fitting]
            raise AvroMismatch(
                f"a dict without a name fits {' and '.join(found)}: give ({found[0]!r}, {{...}})"
            )
        return self._wrap_as_branch(fitting[0], self._prepares[fitting[0]](value))

    def _wrap_as_branch(self, index: int, prepared: Any) -> Any:
        return self._wire_names[index], {WIRE_FIELD: prepared}

    def _name_branches(self) -> str:
        return ", ".join(each.name for each in self._union.branches)
