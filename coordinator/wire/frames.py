"""Splits a connection's bytes into frames: an int32 length and that many bytes.

It does no I/O: bytes go in, whole frames come out. A length that no correct client sends raises
MalformedFrame, and the connection can't be read any further.
"""

from __future__ import annotations

from collections.abc import Iterator

_LENGTH_BYTES = 4
# Pieces below this size are joined at once: a client may send one byte at a time.
_SMALL_PIECE_BYTES = 4_096


class MalformedFrame(Exception):
    """Signals bytes that are no Kafka frame."""


class FrameReader:
    """Splits the bytes that arrive into frames of at most `frame_bytes_max`.

    A frame that comes in several pieces is joined once, when the last one is there. No memory is
    allocated for bytes that a client only announces.
    """

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._head = b""  # the first bytes of an incomplete length
        self._pieces: list[bytes | bytearray] = []  # of an incomplete frame
        self._missing = 0
        self.held_bytes = 0  # in those pieces

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that these bytes complete, without their lengths.

        Raises: MalformedFrame.
        """
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
