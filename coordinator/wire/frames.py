"""Frames: every message on a Kafka connection is an int32 length and so many bytes.

Sans-IO: bytes go in, whole frames come out. A length that no honest client sends is MalformedFrame,
and the connection can't be read any further.
"""

from __future__ import annotations

from collections.abc import Iterator

_LENGTH_BYTES = 4


class MalformedFrame(Exception):
    """The client's bytes are no Kafka frame."""


class FrameReader:
    """Cuts what arrives into frames of at most `frame_bytes_max`."""

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._wanted = _LENGTH_BYTES  # bytes in the buffer before looking at it is worth while

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that these bytes complete, without their lengths."""
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._wanted:
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        at = 0
        while len(data) - at >= _LENGTH_BYTES:
            end = at + _LENGTH_BYTES + self._size(data, at)
            if end > len(data):
                self._wanted = end - at
                break
            yield data[at + _LENGTH_BYTES : end]
            at = end
        else:
            self._wanted = _LENGTH_BYTES
        self._buffer += memoryview(data)[at:]

    def _size(self, data: bytes, at: int) -> int:
        size = int.from_bytes(data[at : at + _LENGTH_BYTES], "big", signed=True)
        if not 0 <= size <= self._frame_bytes_max:
            raise MalformedFrame(f"a frame of {size} bytes; at most {self._frame_bytes_max}")
        return size
