"""Split a connection's bytes into frames: an int32 length and that many bytes.

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
        self._length_start = b""  # the first bytes of an incomplete length
        self._pieces: list[bytes | bytearray] = []  # of an incomplete frame
        self._missing_bytes = 0
        self.held_bytes = 0  # in those pieces

    def try_read_single_frame(self, data: bytes) -> bytes | None:
        """Return the frame if these bytes are just one, as nearly always; else None, unread."""
        size = len(data) - _LENGTH_BYTES
        if (
            self._missing_bytes
            or self._length_start
            or int.from_bytes(data[:_LENGTH_BYTES], "big") != size
            or size > self._frame_bytes_max
        ):
            return None
        return data[_LENGTH_BYTES:]

    def read_frames(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that these bytes complete, without their lengths.

        Raises: MalformedFrame.
        """
        at = 0
        if self._missing_bytes:
            at = self._missing_bytes
            self._append_piece(data[:at])
            if self._missing_bytes:
                return
            yield self._join_pieces()
        elif self._length_start:
            data = self._length_start + data
            self._length_start = b""
        while len(data) - at >= _LENGTH_BYTES:
            start = at + _LENGTH_BYTES
            at = start + self._read_size(data, at)
            if at > len(data):
                self._missing_bytes = at - start
                self._append_piece(data[start:])
                return
            yield data[start:at]
        self._length_start = data[at:]

    def _append_piece(self, piece: bytes) -> None:
        self._missing_bytes -= len(piece)
        self.held_bytes += len(piece)
        if len(piece) >= _SMALL_PIECE_BYTES:
            self._pieces.append(piece)
        elif self._pieces and isinstance(self._pieces[-1], bytearray):
            self._pieces[-1] += piece
        else:
            self._pieces.append(bytearray(piece))

    def _join_pieces(self) -> bytes:
        frame = b"".join(self._pieces)
        self._pieces = []
        self.held_bytes = 0
        return frame

    def _read_size(self, data: bytes, at: int) -> int:
        size = int.from_bytes(data[at : at + _LENGTH_BYTES], "big", signed=True)
        if not 0 <= size <= self._frame_bytes_max:
            raise MalformedFrame(f"a frame of {size} bytes; at most {self._frame_bytes_max}")
        return size
