"""Decide what becomes of stored keys and values whose declared types differ in a new version.

    what the new version makes of a stored value      what becomes of it
    it can't read it                                  lost
    it reads it, and leaves out fields, also such     reduced: these fields are gone when it is
    as only a version before the old one declared     written again
    it reads it                                       kept

What a topic has is not written again: it is reduced only by a field that looks renamed, since the
new version then takes a default for what is there.

Keys are found by their bytes: if these differ, what is stored is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streams.serdes.described_types import DescribedType
from streams.topology.renamed_fields import find_renamed_fields
from streams.topology.state_effects import StateEffect, StateOutcome
from streams.topology.type_compatibility import (
    TypeCompatibility,
    compare_types,
    describe_difference,
    have_equal_bytes,
)

_TYPED_SERDE = re.compile(r"(json|avro|json_schema|protobuf)\(([^()]*)\)")


_PLAIN_SERDES = frozenset({"string", "bytes", "int32", "int64", "float64", "none"})
_WRAPPERS = frozenset(
    {"windowed", "session_windowed", "changed", "subscription", "answer", "left_or_right"}
)


_KEPT_NO_MORE = "unknown fields: keep -> ignore"
"""The end of the change by which a version leaves out what the one before has kept."""


def has_undeclared_type(serde: str, old: DescribedType | None, new: DescribedType | None) -> bool:
    """Return whether a serde may write values of any type, and says nothing about it."""
    if old is not None and new is not None:
        return False
    names = re.findall(r"[A-Za-z_]\w*", serde)
    return not _PLAIN_SERDES.union(_WRAPPERS).issuperset(names)


def do_serdes_differ_in_type_alone(old: str, new: str) -> bool:
    """Return whether the names of two serdes differ in the names of their declared types alone."""
    one, other = _TYPED_SERDE.fullmatch(old), _TYPED_SERDE.fullmatch(new)
    return (
        one is not None
        and other is not None
        and one[1] == other[1]
        and "lossy=True" not in (one[2], other[2])
    )


def compare_keys(
    old: DescribedType | None, new: DescribedType | None, remedy: str
) -> Iterator[StateEffect]:
    """Yield the effect of keys whose types differ; nothing is known of types that are None."""
    if old is None or new is None or have_equal_bytes(old, new):
        return
    changes = ", ".join(compare_types(old, new).changes) or "the order of fields"
    yield StateEffect(
        f"type of keys: {changes}",
        StateOutcome.LOST,
        "equal keys have other bytes, by which nothing is found",
        remedy,
    )


def compare_values(
    old: DescribedType | None, new: DescribedType | None, remedy: str, *, is_store: bool
) -> Iterator[StateEffect]:
    """Yield the effect of values whose types differ; nothing is known of types that are None.

    `remedy` is what to do if they can't be read and are to go.
    """
    if old is None or new is None:
        return
    found = compare_types(old, new)
    if not (found.changes or found.backward or found.forward):
        return
    changes = ", ".join(found.changes) or "the order of fields"
    difference = f"type of values: {changes}; {found}"
    renamed = list(find_renamed_fields(old, new))
    if renamed:
        difference += f"; looks renamed: {', '.join(map(str, renamed))}"
    refused = [each for each in found.backward if each.is_refused]
    if refused:
        yield StateEffect(
            difference,
            StateOutcome.LOST,
            "what it has can't be read: " + "; ".join(map(describe_difference, refused)),
            f"{_describe_remedy(found)}; or {remedy}",
        )
        return
    reason = "what it has is read, and fields that it lacks take their defaults"
    gone = [each.path for each in found.backward if not each.keeps_value]
    if gone:
        reason = f"what it has is read without {', '.join(gone)}"
        if is_store:
            fields = "field" if len(gone) == 1 else "fields"
            reason += f", and values of {fields} {', '.join(gone)} are dropped at the next write"
    if renamed:
        reason += f"; {', '.join(each.new for each in renamed)} takes its default"
    if is_store and (way_back := _explain_rollback_readability(found)):
        reason = f"{reason}; {way_back}"
    is_less_kept = is_store and any(each.endswith(_KEPT_NO_MORE) for each in found.changes)
    if is_less_kept:
        reason += (
            "; fields that the old version keeps and does not declare are dropped at the next write"
        )
    if gone and (is_store or renamed):
        yield StateEffect(difference, StateOutcome.REDUCED, reason, _describe_field_remedy(gone))
    elif is_less_kept:
        remedy = (
            'leave unknown="keep"; if no value has such fields, or they are meant to go, save the '
            "new description"
        )
        yield StateEffect(difference, StateOutcome.REDUCED, reason, remedy)
    else:
        yield StateEffect(difference, StateOutcome.KEPT, reason)


def _describe_field_remedy(gone: list[str]) -> str:
    """Return the remedy for fields whose values the new version would not read."""
    names = ", ".join(gone)
    return (
        f"leave {names} as it was, beside what is new; if it is meant to go, save the new "
        "description"
    )


def _describe_remedy(compatibility: TypeCompatibility) -> str:
    """Return the remedy by which the new type can read values of the old one."""
    refused = [each for each in compatibility.backward if each.is_refused]
    if remedies := [each.remedy for each in refused if each.remedy]:
        return remedies[0]
    missing = [each.path for each in refused if f"+{each.path}" in compatibility.changes]
    if len(missing) == len(refused):
        return f"give {', '.join(missing)} a default"
    return (
        "leave these fields as they were, and add others with defaults for what is new"
        if not missing
        else f"give {', '.join(missing)} a default, and leave the other fields as they were"
    )


def _explain_rollback_readability(compatibility: TypeCompatibility) -> str:
    """Explain whether the old version can read values of the new one, if it is started again."""
    refused = [each for each in compatibility.forward if each.is_refused]
    if refused:
        reasons = "; ".join(map(describe_difference, refused))
        return (
            f"there is no way back: the old version can't read what the new one writes ({reasons})"
        )
    if gone := [each.path for each in compatibility.forward if not each.keeps_value]:
        names = ", ".join(gone)
        return (
            f"if the old version is started again, it leaves out {names} of the values that it "
            "writes again"
        )
    return ""
