"""Read and write a checkpoint in the column family `offsets`, with an entry for each field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.store_checkpoint import StoreCheckpoint

_POSITION = b"position"
_TOPIC_ID = b"topic-id"
_WRITTEN_MS = b"written-ms"
_STREAM_TIME_MS = b"stream-time"
_LAYOUT = b"layout"
_POSITIONS = b"positions"
_COMMITTED_END = b"committed-end"
_FIRST_COMMIT = b"first-commit"
_LAST_COMMIT = b"last-commit"


def read_checkpoint(get_value: Callable[[bytes], bytes | None]) -> StoreCheckpoint | None:
    """Return the checkpoint that the column family has, or None if none was ever written."""
    position = get_value(_POSITION)
    if position is None:
        return None
    written, stream_time = get_value(_WRITTEN_MS), get_value(_STREAM_TIME_MS)
    committed_end = get_value(_COMMITTED_END)
    first, last = get_value(_FIRST_COMMIT), get_value(_LAST_COMMIT)
    return StoreCheckpoint(
        _decode_integer(position),
        (get_value(_TOPIC_ID) or b"").decode(),
        _decode_integer(written) if written else 0,
        _decode_integer(stream_time) if stream_time else -1,
        (get_value(_LAYOUT) or b"").decode(),
        tuple(map(int, (get_value(_POSITIONS) or b"").split())),
        _decode_integer(committed_end) if committed_end else -1,
        _decode_integer(first) if first else 0,
        _decode_integer(last) if last else 0,
    )


def add_checkpoint(batch: Any, checkpoint: StoreCheckpoint, column_family: Any) -> None:
    """Add a checkpoint to a write batch."""
    batch.put(_POSITION, _encode_integer(checkpoint.position), column_family)
    batch.put(_TOPIC_ID, checkpoint.topic_id.encode(), column_family)
    batch.put(_WRITTEN_MS, _encode_integer(checkpoint.written_ms), column_family)
    if checkpoint.stream_time_ms >= 0:
        batch.put(_STREAM_TIME_MS, _encode_integer(checkpoint.stream_time_ms), column_family)
    if checkpoint.committed_end >= 0:
        batch.put(_COMMITTED_END, _encode_integer(checkpoint.committed_end), column_family)
    if checkpoint.last_commit:
        batch.put(_FIRST_COMMIT, _encode_integer(checkpoint.first_commit), column_family)
        batch.put(_LAST_COMMIT, _encode_integer(checkpoint.last_commit), column_family)
    if checkpoint.layout:
        batch.put(_LAYOUT, checkpoint.layout.encode(), column_family)
    if checkpoint.positions:
        batch.put(_POSITIONS, " ".join(map(str, checkpoint.positions)).encode(), column_family)


def _decode_integer(stored: bytes) -> int:
    return int.from_bytes(stored, "big", signed=True)


def _encode_integer(integer: int) -> bytes:
    return integer.to_bytes(8, "big", signed=True)
