"""Find unions that Avro forbids, whose values would come back as those of another branch.

fastavro parses them. Avro for Java and the registries that are written in Java refuse them. Source:
Avro's specification, Unions.
"""

from __future__ import annotations

from collections import Counter

from streams.serdes.avro_schema import NAMED, AvroType


def check_unions(schema: AvroType) -> None:
    """Raise ValueError, with its place in the schema, for a union that Avro forbids."""
    seen: set[int] = set()
    waiting = [(schema, "")]
    while waiting:
        each, path = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if each.kind == "union":
            _check_branches(each, path)
        waiting += [(branch, path) for branch in each.branches]
        waiting += [(field.type, f"{path}.{field.name}") for field in each.fields]
        if each.items is not None:
            waiting.append((each.items, f"{path}[]"))
        if each.underlying is not None:
            waiting.append((each.underlying, path))


def _check_branches(union: AvroType, path: str) -> None:
    """Raise ValueError for a type that is there twice, or a union in the union."""
    types = [_name_type(each) for each in union.branches]
    if "union" in types:
        raise ValueError(
            f"schema{path}: a union is a branch of another union, which Avro forbids: list its "
            "types in the outer one"
        )
    name, count = Counter(types).most_common(1)[0] if types else ("", 0)
    if count > 1:
        raise ValueError(
            f"schema{path}: a union has {count} branches of type {name}, and Avro allows one of "
            "each type that has no name, whatever its logicalType: a value would come back as one "
            "of another branch"
        )


def _name_type(schema: AvroType) -> str:
    """Return the name by which a union has a type only once: its own, or that of its kind."""
    plain = schema.underlying or schema
    return plain.name if plain.kind in NAMED else plain.kind
