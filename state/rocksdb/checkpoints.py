"""Read and write a checkpoint in the column family `offsets`, with an entry for each field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.store import Checkpoint

_POSITION = b"position"
_TOPIC_ID = b"topic-id"
_WRITTEN_MS = b"written-ms"
_STREAM_TIME_MS = b"stream-time"
_LAYOUT = b"layout"
_POSITIONS = b"positions"


def read(get: Callable[[bytes], bytes | None]) -> Checkpoint | None:
    """Return the checkpoint that the column family has, or None if none was ever written."""
    position = get(_POSITION)
    if position is None:
        return None
    written, stream_time = get(_WRITTEN_MS), get(_STREAM_TIME_MS)
    return Checkpoint(
        _integer(position),
        (get(_TOPIC_ID) or b"").decode(),
        _integer(written) if written else 0,
        _integer(stream_time) if stream_time else -1,
        (get(_LAYOUT) or b"").decode(),
        tuple(map(int, (get(_POSITIONS) or b"").split())),
    )


def put(batch: Any, checkpoint: Checkpoint, family: Any) -> None:
    """Add a checkpoint to a write batch."""
    batch.put(_POSITION, _stored(checkpoint.position), family)
    batch.put(_TOPIC_ID, checkpoint.topic_id.encode(), family)
    batch.put(_WRITTEN_MS, _stored(checkpoint.written_ms), family)
    if checkpoint.stream_time_ms >= 0:
        batch.put(_STREAM_TIME_MS, _stored(checkpoint.stream_time_ms), family)
    if checkpoint.layout:
        batch.put(_LAYOUT, checkpoint.layout.encode(), family)
    if checkpoint.positions:
        batch.put(_POSITIONS, " ".join(map(str, checkpoint.positions)).encode(), family)


def _integer(stored: bytes) -> int:
    return int.from_bytes(stored, "big", signed=True)


def _stored(integer: int) -> bytes:
    return integer.to_bytes(8, "big", signed=True)
