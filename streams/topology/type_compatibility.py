"""Decide whether messages that were written as one type can be read as another: pure functions.

    written as              read as                      read
    a scalar                the same, or a wider number  yes
    a text of a date, ...   str                          yes
    an enumeration          one that has all its values  yes; str reads one of texts
    X                       X | None                     yes, and not the other way round
    a record                one with a field more        if the field has a default
                            one with a field less        unless it refuses unknown fields; what the
                                                         field has is left out, or kept
    a tuple, a list         the other                    by the places and elements
    a set                   a list                       yes, and not the other way round

Avro, Protobuf and JSON Schema have the same rules, with their own scalars: they are those of the
schema registry, with the exception of Protobuf's integers, which the registry lets become narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from streams.serdes.described_types import DescribedField, DescribedType

_WIDER: Mapping[str, frozenset[str]] = {
    "int": frozenset({"float", "long", "double", "Decimal"}),  # Python's and Avro's
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
    "integer": frozenset({"number"}),  # JSON Schema's
    "int32": frozenset({"int64"}),  # Protobuf's
    "uint32": frozenset({"uint64"}),
    "sint32": frozenset({"sint64"}),
}
_COLLECTIONS = ("list", "set", "tuple")
_WRITTEN_AS_TEXT = frozenset({"datetime", "date", "time", "UUID", "Decimal"})


class TypeDifference(NamedTuple):
    """Represents a place of a message that a reader refuses, or else leaves out."""

    path: str
    reason: str
    is_refused: bool
    keeps_value: bool = False
    """Whether what is not read is kept with the object, and written again with it."""
    remedy: str = ""
    """What to do about it, where it is not a matter of the fields alone."""


@dataclass(frozen=True, slots=True)
class TypeCompatibility:
    """Represents the differences between an old and a new type of messages, for each reader.

    `backward`: what the new type makes of what the old one wrote. `forward`: the other way round.
    """

    backward: tuple[TypeDifference, ...]
    forward: tuple[TypeDifference, ...]
    changes: tuple[str, ...]
    """The fields that were added, removed or changed, as `+biggest` and `cents: int -> str`."""

    @property
    def is_backward(self) -> bool:
        """Return whether the new version reads what the old one wrote.

        For tests, which compare it with what serdes do.
        """
        return not any(each.is_refused for each in self.backward)

    def __str__(self) -> str:
        """Return the compatibility as text: for each direction yes, no, or without which fields."""
        told = (
            f"{direction} {_describe_direction(differences)}"
            for direction, differences in (("backward", self.backward), ("forward", self.forward))
        )
        return f"compatible {', '.join(told)}"


def _describe_direction(differences: tuple[TypeDifference, ...]) -> str:
    if any(each.is_refused for each in differences):
        return "no"
    gone = [each.path for each in differences if not each.keeps_value]
    return f"without {', '.join(gone)}" if gone else "yes"


def compare_types(old: DescribedType, new: DescribedType) -> TypeCompatibility:
    """Compare the types of two versions of an application, in both directions."""
    backward = tuple(_compare_reading(_Reading(old), _Reading(new), ""))
    forward = tuple(_compare_reading(_Reading(new), _Reading(old), ""))
    changes = tuple(dict.fromkeys(_describe_type_changes(_Reading(old), _Reading(new), "")))
    return TypeCompatibility(backward, forward, changes)


def have_equal_bytes(a: DescribedType, b: DescribedType) -> bool:
    """Return whether equal objects have equal bytes, as keys must: fields in the same order."""
    return _list_types_in_byte_order(a) == _list_types_in_byte_order(b)


def _list_types_in_byte_order(described: DescribedType) -> list[object]:
    """Return a type as a list in the order of its bytes, without the names of records."""
    named = "" if described.kind in ("record", "enum", "reference") else described.name
    return [
        described.kind,
        named,
        [_list_types_in_byte_order(each) for each in described.items],
        [[name, _list_types_in_byte_order(each.type)] for name, each in described.fields.items()],
        described.symbols,
        described.rules,
        described.identity,
    ]


def describe_difference(difference: TypeDifference) -> str:
    """Return a difference as its place and its reason, for messages."""
    return ": ".join(filter(None, (difference.path, difference.reason)))


def format_type(described: DescribedType) -> str:
    """Return a type for messages, as `list[Order]`."""
    items = [format_type(each) for each in described.items]
    match described.kind:
        case "union":
            return " | ".join(items)
        case "list" | "set" | "tuple":
            return f"{described.kind}[{', '.join(items)}]"
        case "map":
            return f"dict[{', '.join(items)}]"
        case "all":
            return " and ".join(items)
        case "any":
            return described.name or "Any"
        case _:
            return described.name + (f" of {described.rules}" if described.rules else "")


@dataclass(frozen=True, slots=True)
class _Reading:
    """Holds a type with the records around it, which references lead to."""

    type: DescribedType
    around: tuple[DescribedType, ...] = ()

    def resolve_reference(self) -> _Reading:
        """Return the record type that this reference names; any other type is returned itself."""
        if self.type.kind == "reference":
            for index, each in enumerate(self.around):
                if each.name == self.type.name:
                    return _Reading(each, self.around[:index])
        return self

    def enter_part(self, part: DescribedType) -> _Reading:
        """Return a part of this type, with the records around it."""
        if self.type.kind == "record":
            return _Reading(part, (*self.around, self.type))
        return _Reading(part, self.around)


_Rule = Callable[[_Reading, _Reading, str], Iterator[TypeDifference]]


def _compare_reading(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    """Compare a written type with the reader's; yield the places that are changed or refused."""
    a, b = written.type, reader.type
    if a == b and written.around == reader.around:
        return
    if a.kind == b.kind == "reference":
        return  # the records that they lead to are being compared
    written, reader = written.resolve_reference(), reader.resolve_reference()
    a, b = written.type, reader.type
    if b.kind == "any" and b.name in ("", a.name):
        return
    if a.rules != b.rules and b.rules and "all" not in (a.kind, b.kind):
        yield _create_refusal(
            path, f"its rules differ, and are not compared: {a.rules} -> {b.rules}"
        )
    yield from _choose_rule(a, b)(written, reader, path)


def _choose_rule(a: DescribedType, b: DescribedType) -> _Rule:
    """Return the function that compares types of two kinds."""
    if "all" in (a.kind, b.kind):
        return _compare_all_of
    if "union" in (a.kind, b.kind):
        return _compare_unions
    if a.kind in _COLLECTIONS and b.kind in _COLLECTIONS:
        return _compare_elements
    rules = {
        "record": _compare_records,
        "map": _compare_maps,
        "enum": _compare_enums,
        "hash": _compare_hashes,
    }
    return rules.get(a.kind, _compare_scalars) if a.kind == b.kind else _compare_scalars


def _compare_maps(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    places = zip(written.type.items, reader.type.items, (" (key)", "[...]"), strict=True)
    for x, y, step in places:
        yield from _compare_reading(written.enter_part(x), reader.enter_part(y), path + step)


def _compare_hashes(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    """Yield a difference if the rows of a foreign-key join have other bytes, and so other hashes.

    A foreign-key join keeps the hash of each row of its left table with the row's subscription.
    """
    if not have_equal_bytes(written.type.items[0], reader.type.items[0]):
        yield TypeDifference(
            path.lstrip("."),
            "rows of the left table are known by the hash of their bytes, and these are others: "
            "changes of the other table lead to no results of a row until it is written again",
            is_refused=True,
            remedy=(
                "leave the rows of the left table as they were, and add what is new behind the "
                "join; or write each of its rows again"
            ),
        )


def _compare_enums(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    a, b = written.type, reader.type
    if more := sorted(set(a.symbols) - set(b.symbols)):
        yield _create_refusal(path, f"{b.name} has no {', '.join(more)}")
    yield from _compare_names(a, b, path)


def _compare_scalars(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    a, b = written.type, reader.type
    if not _is_read_as_scalar(a, b):
        yield _create_refusal(path, f"{format_type(a)} is not read as {format_type(b)}")


def _create_refusal(path: str, reason: str) -> TypeDifference:
    return TypeDifference(path.lstrip("."), reason, is_refused=True)


def _is_read_as_scalar(a: DescribedType, b: DescribedType) -> bool:
    if a.kind == b.kind == "scalar":
        is_text = b.name == "str" and a.name in _WRITTEN_AS_TEXT
        return a.name == b.name or b.name in _WIDER.get(a.name, ()) or is_text
    return a.kind == "enum" and (b.kind, b.name) == ("scalar", "str") and _are_all_symbols_texts(a)


def _are_all_symbols_texts(described: DescribedType) -> bool:
    return all(each[:1] in "'\"" for each in described.symbols)


def _compare_names(a: DescribedType, b: DescribedType, path: str) -> Iterator[TypeDifference]:
    if b.must_be_named and a.name not in (b.name, *b.former_names):
        yield _create_refusal(path, f"{a.name} is not read as {b.name}, another name")


def _compare_records(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    a, b = written.type, reader.type
    yield from _compare_names(a, b, path)
    read = set[str]()
    for name, field in b.fields.items():
        place, source = f"{path}.{field.label or name}", _find_written_field(a, name, field)
        if source is not None:
            read.add(source)
        if source is None or (a.fields[source].is_optional and not field.has_default):
            if not field.has_default:
                yield _create_refusal(
                    place,
                    f"{b.name} needs it, and {'a' if source else 'no'} message "
                    f"{'may lack it' if source else 'has it'}",
                )
            if source is None:
                continue
        yield from _compare_reading(
            written.enter_part(a.fields[source].type), reader.enter_part(field.type), place
        )
    for name, field in a.fields.items():
        if name not in read:
            place = f"{path}.{field.label or name}".lstrip(".")
            if b.unknown == "refuse":
                yield _create_refusal(
                    place, f"{b.name} has no such field, and refuses unknown ones"
                )
            else:
                keeps = b.unknown == "keep"
                reason = "is kept" if keeps else "is left out when the value is written again"
                yield TypeDifference(place, reason, is_refused=False, keeps_value=keeps)


def _find_written_field(written: DescribedType, name: str, field: DescribedField) -> str | None:
    """Return the name of the field that a message has for a field of its reader."""
    return next((each for each in (name, *field.aliases) if each in written.fields), None)


def _compare_elements(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    a, b = written.type, reader.type
    if b.kind == "set" and a.kind != "set":
        yield _create_refusal(
            path, f"{format_type(a)} is not read as {format_type(b)}: it may have equal ones"
        )
    elif b.kind == "tuple" and (a.kind != "tuple" or len(a.items) != len(b.items)):
        yield _create_refusal(
            path, f"{format_type(a)} is not read as {format_type(b)}: of another length"
        )
    else:
        for index, item in enumerate(a.items):
            place = f"{path}[{index}]" if a.kind == "tuple" else f"{path}[...]"
            target = b.items[index] if b.kind == "tuple" else b.items[0]
            yield from _compare_reading(written.enter_part(item), reader.enter_part(target), place)


def _compare_unions(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    """Yield the differences of each type of a written union to the reader's nearest type."""
    writers = written.type.items if written.type.kind == "union" else (written.type,)
    readers = reader.type.items if reader.type.kind == "union" else (reader.type,)
    for member in writers:
        found = [
            list(_compare_reading(replace(written, type=member), replace(reader, type=each), path))
            for each in readers
        ]
        best = min(found, key=lambda each: (any(one.is_refused for one in each), len(each)))
        if any(each.is_refused for each in best) and member.kind not in ("record", "list", "map"):
            reason = f"{format_type(member)} is not read as {format_type(reader.type)}"
            yield _create_refusal(path, reason)
        else:
            yield from best


def _compare_all_of(written: _Reading, reader: _Reading, path: str) -> Iterator[TypeDifference]:
    """Yield the differences of a message that must match several types at once (allOf)."""
    writers = written.type.items if written.type.kind == "all" else (written.type,)
    readers = reader.type.items if reader.type.kind == "all" else (reader.type,)
    for index, each in enumerate(readers):
        member = writers[index] if index < len(writers) else writers[-1]
        yield from _compare_reading(replace(written, type=member), replace(reader, type=each), path)


def _describe_type_changes(old: _Reading, new: _Reading, path: str) -> Iterator[str]:
    """Yield the differences between two types as sentences, field by field."""
    a, b = old.type, new.type
    if a == b or a.kind == b.kind == "reference":
        return
    place = path.lstrip(".")
    if a.kind == b.kind == "record":
        if a.unknown != b.unknown:
            yield f"{place}: ".lstrip(": ") + f"unknown fields: {a.unknown} -> {b.unknown}"
        for name, field in a.fields.items():
            inner = f"{path}.{field.label or name}"
            if name not in b.fields:
                yield f"-{inner.lstrip('.')}"
                continue
            other = b.fields[name]
            yield from _describe_type_changes(
                old.enter_part(field.type), new.enter_part(other.type), inner
            )
            if field.has_default and not other.has_default:
                yield f"{inner.lstrip('.')} has no default any more"
        for name, field in b.fields.items():
            if name not in a.fields:
                yield f"+{path.lstrip('.')}{'.' if path else ''}{field.label or name}"
    elif a.kind == b.kind and a.items and len(a.items) == len(b.items):
        for x, y in zip(a.items, b.items, strict=True):
            yield from _describe_type_changes(old.enter_part(x), new.enter_part(y), path)
    elif a.kind == b.kind == "enum" and a.name == b.name:
        gone, come = set(a.symbols) - set(b.symbols), set(b.symbols) - set(a.symbols)
        told = [*(f"-{each}" for each in sorted(gone)), *(f"+{each}" for each in sorted(come))]
        yield f"{place}: {', '.join(told)}"
    else:
        yield f"{place}: ".lstrip(": ") + f"{format_type(a)} -> {format_type(b)}"
