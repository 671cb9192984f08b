"""Find the error codes in kio's responses, at their top or in any struct within, for the figures.

Where they are is worked out once for each type of entity. Arrays of structs without a code, such as
a fetch's aborted transactions, are not walked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, cast

from kio.schema.errors import ErrorCode

from coordinator.wire.array_limits import find_element_type

# Appends the codes of an entity, other than `none`, to a list.
CollectErrors = Callable[[Any, list[int]], None]
_NONE = ErrorCode.none


@cache
def create_error_collector(entity_type: Any) -> CollectErrors | None:
    """Create the function that collects the codes of an entity; None if its type has none."""
    get_codes: list[Callable[[Any], Any]] = []
    nested: list[CollectErrors] = []
    for field in fields(entity_type):
        inner, is_array = find_element_type(field.type)
        if is_dataclass(inner):
            collect = create_error_collector(cast(Any, inner))
            if collect is not None:
                nested.append(_create_nested_collector(field.name, collect, is_array))
        elif field.metadata.get("kafka_type") == "error_code" and not is_array:
            get_codes.append(attrgetter(field.name))
    return _combine_collectors(get_codes, nested)


def _combine_collectors(
    get_codes: list[Callable[[Any], Any]], nested: list[CollectErrors]
) -> CollectErrors | None:
    """Combine functions that collect error codes into one; None if there are none."""
    if not get_codes and len(nested) <= 1:
        return nested[0] if nested else None
    if len(get_codes) == 1 and not nested:
        return _create_single_collector(get_codes[0])

    def collect_errors(entity: Any, found: list[int]) -> None:
        for get_code in get_codes:
            code = get_code(entity)
            if code is not _NONE:
                found.append(int(code))
        for collect in nested:
            collect(entity, found)

    return collect_errors


def _create_single_collector(get_code: Callable[[Any], Any]) -> CollectErrors:
    """Create the collector of a struct that has one code and nothing else to look at."""

    def collect_error(entity: Any, found: list[int]) -> None:
        code = get_code(entity)
        if code is not _NONE:
            found.append(int(code))

    return collect_error


def _create_nested_collector(name: str, collect: CollectErrors, is_array: bool) -> CollectErrors:
    get = attrgetter(name)

    def collect_from_array(entity: Any, found: list[int]) -> None:
        for each in get(entity) or ():
            collect(each, found)

    def collect_from_struct(entity: Any, found: list[int]) -> None:
        value = get(entity)
        if value is not None:
            collect(value, found)

    return collect_from_array if is_array else collect_from_struct


def find_error_codes(response: Any) -> tuple[int, ...]:
    """Return all error codes of a response, in their order, without those that say `none`."""
    collect = create_error_collector(response.__class__)
    found: list[int] = []
    if collect is not None:
        collect(response, found)
    return tuple(found)
