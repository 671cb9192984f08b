"""The metadata of a committed input offset: where each store of the task stood at that commit.

All input partitions of a task carry the same metadata at each of its commits, so one stable
OffsetFetch is a consistent cut. Format: `{"v": 1, "c": {store: changelog position}}` as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

_FORMAT = 1


def encode_metadata(positions: Mapping[str, int]) -> str:
    """`positions`: for each store the first changelog offset that is not in it."""
    return orjson.dumps({"v": _FORMAT, "c": positions}).decode()


def decode_metadata(metadata: str) -> dict[str, int]:
    """The positions; none where the metadata is not ours (Kafka Streams', a tool's, empty)."""
    try:
        found = orjson.loads(metadata)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(found, dict) or found.get("v") != _FORMAT:
        return {}
    return {store: int(position) for store, position in found["c"].items()}
