"""Frames: every message on a Kafka connection is an int32 length and so many bytes.

Sans-IO: bytes go in, whole frames come out. A length that no honest client sends is MalformedFrame,
and the connection can't be read any further.
"""

from __future__ import annotations

from collections.abc import Iterator

_LENGTH_BYTES = 4
# Pieces below this are put together at once: a client may send one byte at a time.
_SMALL_PIECE_BYTES = 4_096


class MalformedFrame(Exception):
    """The client's bytes are no Kafka frame."""


class FrameReader:
    """Cuts what arrives into frames of at most `frame_bytes_max`.

    A frame that comes in several pieces is put together once, when the last one is there. Nothing
    is made room for because a client says that it will send it.
    """

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._head = b""  # of a length that isn't all there
        self._pieces: list[bytes | bytearray] = []  # of a frame that isn't
        self._missing = 0
        self.held_bytes = 0  # in those pieces

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that these bytes complete, without their lengths."""
        at = 0
        if self._missing:
            at = self._missing
            self._keep(data[:at])
            if self._missing:
                return
            yield self._put_together()
        elif self._head:
            data = self._head + data
            self._head = b""
        while len(data) - at >= _LENGTH_BYTES:
            start = at + _LENGTH_BYTES
            at = start + self._size(data, at)
            if at > len(data):
                self._missing = at - start
                self._keep(data[start:])
                return
            yield data[start:at]
        self._head = data[at:]

    def _keep(self, piece: bytes) -> None:
        self._missing -= len(piece)
        self.held_bytes += len(piece)
        if len(piece) >= _SMALL_PIECE_BYTES:
            self._pieces.append(piece)
        elif self._pieces and isinstance(self._pieces[-1], bytearray):
            self._pieces[-1] += piece
        else:
            self._pieces.append(bytearray(piece))

    def _put_together(self) -> bytes:
        frame = b"".join(self._pieces)
        self._pieces = []
        self.held_bytes = 0
        return frame

    def _size(self, data: bytes, at: int) -> int:
        size = int.from_bytes(data[at : at + _LENGTH_BYTES], "big", signed=True)
        if not 0 <= size <= self._frame_bytes_max:
            raise MalformedFrame(f"a frame of {size} bytes; at most {self._frame_bytes_max}")
        return size
