"""Refuse dataclasses that their constructor would make otherwise than they are.

A message has the fields that a constructor takes. Those with init=False are not in it, and a
`__post_init__` that changes what it is given changes it again when the object is read. So an object
of such a class is built from its message when it is written, and compared; objects of all others
are not. A field with compare=False, as one that keeps a result, may differ.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any

from state.read_back import describe_first_difference
from streams.serdes.declared_types import list_init_fields, resolve_field_types, strip_type_hint

Convert = Callable[[Any], Any]

_GENERATED_FILE = "<string>"
"""Where the code of constructors is that `dataclass` has made."""


def create_checked_encoder(
    type_hint: Any,
    encode: Convert,
    build: Convert,
    copy: Convert,
    create_error: Callable[[str, str], Exception],
) -> Convert:
    """Return an encoder that refuses an object which `build` would make otherwise.

    It is `encode` itself if no class in the type has a constructor of its own. `copy` copies a
    message, which a constructor may change; `create_error` takes a reason and a path.
    """
    if not _has_own_constructor(type_hint, set()):
        return encode

    def encode_and_compare(value: Any) -> Any:
        message = encode(value)
        try:
            difference = describe_first_difference(value, build(copy(message)))
        except ValueError as error:
            raise create_error(f"it can't be read back: {error}", "") from error
        if difference is not None:
            path, _, both = difference.partition(" is ")
            raise create_error(
                f"it is {both}: a constructor makes it anew from the fields that it takes. "
                "compare=False takes a field out of this comparison",
                path.removeprefix("value"),
            )
        return message

    return encode_and_compare


def _has_own_constructor(type_hint: Any, seen: set[Any]) -> bool:
    """Return whether a dataclass in a type does more in its constructor than keep its arguments."""
    hint = strip_type_hint(type_hint)
    if isinstance(hint, Mapping):
        return any(_has_own_constructor(each, seen) for each in hint.values())
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return any(_has_own_constructor(each, seen) for each in typing.get_args(hint))
    if hint in seen:
        return False
    seen.add(hint)
    init: Any = hint.__init__
    is_generated = getattr(init, "__code__", None) and init.__code__.co_filename == _GENERATED_FILE
    if not is_generated or hasattr(hint, "__post_init__"):
        return True
    if any(not each.init and each.compare for each in dataclasses.fields(hint)):
        return True
    hints = resolve_field_types(hint)
    return any(_has_own_constructor(hints[each.name], seen) for each in list_init_fields(hint))
