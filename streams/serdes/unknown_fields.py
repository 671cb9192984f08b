"""Keep the fields of a message that its dataclass does not have, and give them back.

They are in the dataclass's field of the type `UnknownFields`, if it declares one: then
`dataclasses.replace` keeps them, and equal objects have equal ones. Else they are beside the
fields, in an attribute of the object: such an object is written with them, and a new one, as
`dataclasses.replace` creates, has none.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Literal

from streams.serdes.declared_types import resolve_field_types

Unknown = Literal["ignore", "refuse", "keep"]
"""Says what becomes of the fields of a message that its dataclass does not have."""


class _UnknownFieldsMark:
    """Marks the field that holds what a dataclass does not declare."""


UnknownFields = typing.Annotated[dict[str, Any], _UnknownFieldsMark()]
"""The type of the field that takes what a dataclass does not declare, with unknown="keep"."""

ATTRIBUTE = "_unknown_fields"
"""The attribute of objects whose dataclass has no field for them."""


def check_unknown(unknown: object) -> None:
    """Raise ValueError for a choice for unknown fields that is no member of `Unknown`."""
    if unknown not in typing.get_args(Unknown):
        raise ValueError(f'unknown= is "ignore", "refuse" or "keep", got {unknown!r}')


def find_unknown_field(cls: type[Any]) -> str | None:
    """Return the name of the dataclass's field of the type UnknownFields, if there is one."""
    for name, hint in resolve_field_types(cls).items():
        if any(isinstance(each, _UnknownFieldsMark) for each in getattr(hint, "__metadata__", ())):
            return name
    return None


def require_place_for_unknown_fields(cls: type[Any], unknown: Unknown) -> None:
    """Raise TypeError for a dataclass whose objects have no place for unknown fields."""
    name = find_unknown_field(cls)
    if name is None and unknown == "keep" and cls.__dictoffset__ == 0:
        raise TypeError(
            f"{cls.__name__} has slots, and so no place for unknown fields: declare one, as in "
            "others: serdes.UnknownFields = field(default_factory=dict)"
        )
    if name is not None and unknown != "keep":
        raise TypeError(
            f"{cls.__name__}.{name} is for unknown fields, which unknown={unknown!r} does not keep"
        )
    if name is not None and not any(
        each.name == name and each.init and each.default_factory is not dataclasses.MISSING
        for each in dataclasses.fields(cls)
    ):
        raise TypeError(
            f"{cls.__name__}.{name} needs a default: serdes.UnknownFields = "
            "field(default_factory=dict)"
        )


def attach_unknown_fields(value: Any, fields: dict[str, Any]) -> None:
    """Attach unknown fields to an object, frozen or not, for its next serialization."""
    object.__setattr__(value, ATTRIBUTE, fields)


def get_unknown_fields(value: Any) -> dict[str, Any]:
    """Return the unknown fields that `attach_unknown_fields` has kept with an object."""
    found: dict[str, Any] = vars(value).get(ATTRIBUTE) or {}
    return found
