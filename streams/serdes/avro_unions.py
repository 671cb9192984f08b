"""Decide which values of a union stand for themselves, and which need the name of their branch.

A value whose branch shows is given as it is. Any other is a pair, `("shop.Created", {...})`, as
fastavro has it: a record of a union with several records, and a number, text or bytes of a branch
that a plain value would not get, as a small number that was written as a long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streams.serdes.avro_logical_types import PYTHON_TYPES
from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_scalars import create_scalar_writer
from streams.serdes.avro_schema import AvroType

Convert = Callable[[Any], Any]

_KIND_TYPES: Mapping[str, type[Any]] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "enum": str,
    "bytes": bytes,
    "fixed": bytes,
    "array": list,
    "map": dict,
    "record": dict,
    "error": dict,
}


@dataclass(frozen=True)
class AvroOptions:
    """Holds the options of `serdes.avro` that decide in which form values have messages.

    `names_records`: records of unions of several have their names. `passes_numbers`: times that
    Python has none for are numbers. `takes_simple_names`: names need no namespace, since they come
    from dataclasses.
    """

    names_records: bool = True
    passes_numbers: bool = False
    takes_simple_names: bool = False


def find_python_types(schema: AvroType, options: AvroOptions) -> frozenset[type[Any]]:
    """Return the types that the values of a branch have in Python; empty if any."""
    if schema.is_added_logical_type:
        return frozenset()
    if not schema.logical_type:
        return frozenset({_KIND_TYPES[schema.kind]})
    found = PYTHON_TYPES[schema.logical_type]
    is_number = options.passes_numbers and schema.kind in ("int", "long")
    return frozenset({found, int} if is_number else {found})


def order_branches_for_writing(union: AvroType) -> list[int]:
    """Return the branches in the order in which a plain value is tried, as fastavro tries them.

    That is the order of the schema, but a double comes before a float, which would be rounded.
    """
    found = list(range(len(union.branches)))
    found.sort(key=lambda index: union.branches[index].kind == "float")
    return found


def group_by_type(union: AvroType, options: AvroOptions) -> dict[type[Any], list[int]]:
    """Return the branches that may have values of each type, in the order they are tried in."""
    found: dict[type[Any], list[int]] = {}
    for index in order_branches_for_writing(union):
        for each in find_python_types(union.branches[index], options):
            found.setdefault(each, []).append(index)
    return found


def create_branch_namer(union: AvroType, index: int, options: AvroOptions) -> Convert | None:
    """Return the function that makes the pair of a value of a branch, if it needs to be one.

    None if the values of the branch stand for themselves.
    """
    branch, name = union.branches[index], union.branches[index].name
    groups = group_by_type(union, options)
    types = find_python_types(branch, options)
    if dict in types:
        if len(groups[dict]) == 1 or not options.names_records:
            return None
        return lambda value: (name, value)
    earlier: dict[type[Any], Sequence[Convert]] = {}
    for each in types:
        before = groups[each][: groups[each].index(index)]
        if before:
            earlier[each] = [
                create_scalar_writer(union.branches[i], passes_numbers=options.passes_numbers)
                for i in before
            ]
    if not earlier:
        return None

    def give_name(value: Any) -> Any:
        for write in earlier.get(type(value), ()):
            if can_write_value(write, value):
                return name, value
        return value

    return give_name


def can_write_value(write: Convert, value: Any) -> bool:
    """Return whether a branch has a value, by the function that writes it."""
    try:
        write(value)
    except AvroMismatch:
        return False
    return True
