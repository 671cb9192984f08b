"""Refuse a join whose sides certainly have keys of different types.

Such keys never match, and a store or a repartition topic refuses the first of them: Kafka Streams'
ClassCastException. Where it is not certain, as with JSON or a serde of the user's, nothing is said.
"""

from __future__ import annotations

from typing import Any

from streams import serdes
from streams.errors import TopologyError
from streams.serdes import Serde

_KEY_TYPES: tuple[tuple[Serde[Any], str], ...] = (
    (serdes.string, "str"),
    (serdes.bytes, "bytes"),
    # Each of them writes an int, and so keys of one may be written with another.
    (serdes.int32, "a number"),
    (serdes.int64, "a number"),
    (serdes.float64, "a number"),
)


def check_join_keys(step: str, left: Serde[Any] | None, right: Serde[Any] | None) -> None:
    """Raise TopologyError if the keys of a join's sides are certainly of different types."""
    left_type, right_type = _find_key_type(left), _find_key_type(right)
    if left is None or right is None or not left_type or not right_type or left_type == right_type:
        return
    raise TopologyError(
        f"step {step!r} joins by key, and keys of the one side are {left_type} (serde "
        f"{left.name!r}), those of the other {right_type} (serde {right.name!r}), so that none "
        "match: read both with one serde, or first select_key(...) on a stream, with the key of "
        "the other side"
    )


def _find_key_type(serde: object) -> str:
    """Return the type of the keys of a serde; empty where it is not certain."""
    if not isinstance(serde, Serde):  # no serde at all is refused where it is used
        return ""
    if serde.inner is not None:
        return "Windowed"
    return next((each for known, each in _KEY_TYPES if known is serde), "")
