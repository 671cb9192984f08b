"""Find the fields of values that a new version looks to have renamed: the former value is not read.

A message has its fields by their names, so a renamed field is one that is gone and another one that
takes its default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streams.serdes.described_types import DescribedField, DescribedType


class RenamedField(NamedTuple):
    """Names a field of the old version, and the one of the new version that looks to be it."""

    old: str
    new: str

    def __str__(self) -> str:
        """Return both names, as `cents -> total`."""
        return f"{self.old} -> {self.new}"


def find_renamed_fields(
    old: DescribedType, new: DescribedType, path: str = ""
) -> Iterator[RenamedField]:
    """Yield the fields of records that look renamed, within lists, tuples, dicts and unions too.

    That is where one field of a type is gone from a record and one of the same type has come to it.
    A field that is read by its former name, an alias, loses nothing.
    """
    if old == new:
        return
    if old.kind == new.kind == "record":
        yield from _compare_records(old, new, path)
    elif old.kind == new.kind and len(old.items) == len(new.items):
        for a, b in zip(old.items, new.items, strict=True):
            yield from find_renamed_fields(a, b, path)


def _compare_records(old: DescribedType, new: DescribedType, path: str) -> Iterator[RenamedField]:
    aliases = {alias for each in new.fields.values() for alias in each.aliases}
    gone = [n for n in old.fields if n not in new.fields and n not in aliases]
    come = [
        name
        for name, field in new.fields.items()
        if name not in old.fields and old.fields.keys().isdisjoint(field.aliases)
    ]
    for name in gone:
        wanted = old.fields[name].type
        alike = [each for each in come if new.fields[each].type == wanted]
        rivals = [each for each in gone if old.fields[each].type == wanted]
        if len(alike) == len(rivals) == 1:
            (other,) = alike
            yield RenamedField(
                _build_field_path(path, name, old.fields[name]),
                _build_field_path(path, other, new.fields[other]),
            )
    for name in old.fields.keys() & new.fields.keys():
        a, b = old.fields[name], new.fields[name]
        yield from find_renamed_fields(a.type, b.type, f"{_build_field_path(path, name, a)}.")


def _build_field_path(path: str, name: str, field: DescribedField) -> str:
    return f"{path}{field.label or name}"
