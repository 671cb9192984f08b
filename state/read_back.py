"""Compare a value with what its bytes are read back as: a restart reads those."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from state.entry import StoreEntry
from state.shown_values import quote_value

log = logging.getLogger(__name__)


class _PartPair(NamedTuple):
    """Holds a part of a value, and that at the same place of what its bytes are read back as."""

    place: str
    written: Any
    read: Any


def describe_first_difference(written: Any, read: Any, path: str = "value") -> str | None:
    """Return the first place where two values differ, types included, and how; None if nowhere.

    Objects whose class does not define equality can't be compared, and pass.
    """
    if type(written) is not type(read):
        return (
            f"{path} is {type(written).__name__} {written!r:.80}, and is read back as "
            f"{type(read).__name__} {read!r:.80}"
        )
    for step, left, right in _pair_parts(written, read):
        if found := describe_first_difference(left, right, path + step):
            return found
    if _are_unequal(written, read):
        return f"{path} is {written!r:.80}, and is read back as {read!r:.80}"
    return None


class ReadBackSample:
    """Reads one value of each commit back, and warns once where it was another before."""

    def __init__(self, store_name: str, decode_value: Callable[[bytes], Any]) -> None:
        self._store_name = store_name
        self._decode_value = decode_value
        self._is_warned = False

    def warn_if_read_back_differently(
        self,
        overlay: dict[bytes, StoreEntry[Any, Any]],
        entries: Sequence[tuple[bytes, bytes | None, int]],
    ) -> None:
        """Compare the last value of an overlay with what its changelog entry is read back as."""
        if not entries or entries[-1][1] is None or self._is_warned:
            return
        written = overlay[next(reversed(overlay))]
        if written.value is entries[-1][1]:
            return  # Serialised when it was put, as in the stores of joins: no step sees it before.
        try:
            difference = describe_first_difference(
                written.value, self._decode_value(entries[-1][1])
            )
        except Exception as error:
            difference = f"its bytes can't be read back: {type(error).__name__}: {error}"
        if difference is not None:
            self._is_warned = True
            log.warning(
                "store %r: the serde does not give back the value of key %s: %s. Steps see one "
                "before a commit and the other after it, or after a restart: give the store a "
                "serde that carries the type, as serdes.json(Type)",
                self._store_name,
                quote_value(written.key),
                difference,
            )


def _pair_parts(written: Any, read: Any) -> Iterable[_PartPair]:
    """Yield the parts of two values of one type that are at the same place."""
    if dataclasses.is_dataclass(written):
        for field in dataclasses.fields(written):
            if field.compare and hasattr(written, field.name) and hasattr(read, field.name):
                name = field.name
                yield _PartPair(f".{name}", getattr(written, name), getattr(read, name))
    elif isinstance(written, dict):
        for key in written:
            if key in read:
                yield _PartPair(f"[{key!r}]", written[key], read[key])
    elif isinstance(written, list | tuple):
        for index, (left, right) in enumerate(zip(written, read, strict=False)):
            yield _PartPair(f"[{index}]", left, right)


def _are_unequal(written: Any, read: Any) -> bool:
    """Return whether two values of one type certainly differ, beside parts that were compared."""
    if isinstance(written, float):
        return repr(written) != repr(read)  # -0.0 equals 0.0, and NaN does not equal itself
    if isinstance(written, dict):
        return bool(written.keys() != read.keys())
    if isinstance(written, list | tuple):
        return len(written) != len(read)
    by_identity: Any = object.__eq__
    if dataclasses.is_dataclass(written) or type(written).__eq__ is by_identity:
        return False
    # An array answers with an array, and some objects, as a Decimal's NaN, differ from themselves.
    return (written == read) is False and (written == written) is True
