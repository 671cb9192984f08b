"""Read the lines of a file or of standard input, one definition of a line for both.

A line ends with LF or with CRLF; the last one may have no end. Any other character is a part of the
line: a lone CR, U+2028, U+0085, form feeds, NUL. A byte order mark at the beginning of the input is
no part of the first line. Lines are split before they are decoded, so that the line is known which
the encoding can't read, and those before it are not lost.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from streams.errors import ConfigError

_READ_BYTES = 1 << 16
_BYTE_ORDER_MARKS = (
    # Those of UTF-32 first: that of UTF-16, little endian, is a part of one of them.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_BYTE_ORDER_MARK_BYTES_MAX = 4
_MARKED_ENCODINGS = ("utf-16", "utf-32")
"""Encodings whose byte order nothing but the mark tells."""


class InputLine(NamedTuple):
    """Represents a record's text with its place in the input, for messages: `line 3`."""

    place: str
    text: str


def require_known_encoding(name: str, option: str) -> str:
    """Return Python's name of an encoding. Raises ConfigError, which names the `option`."""
    try:
        "\n".encode(name)
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        raise ConfigError(
            f"{option} {name!r} is no encoding: give utf-8, utf-16, latin-1, cp1252, shift_jis or "
            "another that Python has"
        ) from None
    return "utf-8" if found == "utf-8-sig" else found


def read_lines(stream: BinaryIO, encoding: str, first_line: int = 1) -> Iterator[InputLine]:
    """Yield the lines of a binary stream from number `first_line` on, without their ends.

    `encoding` is what `require_known_encoding` has returned. Raises ConfigError for bytes that the
    encoding can't read, naming the line, and where the input ends before `first_line`.
    """
    head = _read_first_bytes(stream)
    count = 0
    if head:
        encoding, mark = _detect_encoding_and_byte_order_mark(head, encoding)
        lines = _split_lines(stream, head[len(mark) :], encoding)
        for count, data in enumerate(lines, start=1):
            if count >= first_line:
                yield InputLine(f"line {count}", _decode_line(data, count, encoding))
    if count < first_line - 1:
        raise ConfigError(f"--from-line {first_line}: the last line of the input is {count}")


def _read_first_bytes(stream: BinaryIO) -> bytes:
    """Return the first bytes of a stream, as many as a byte order mark may have.

    From a terminal or a pipe they come with the first line, and less is there at its end only.
    """
    head = b""
    while len(head) < _BYTE_ORDER_MARK_BYTES_MAX:
        data = stream.readline(_BYTE_ORDER_MARK_BYTES_MAX - len(head))
        head += data
        if not data or head.endswith(b"\n"):
            break
    return head


def _detect_encoding_and_byte_order_mark(head: bytes, encoding: str) -> tuple[str, bytes]:
    """Return the encoding with its byte order, and the byte order mark that `head` begins with.

    Raises ConfigError for the mark of another encoding, and for none where one is needed.
    """
    if not encoding.startswith("utf-"):
        return encoding, b""
    for mark, marked in _BYTE_ORDER_MARKS:
        if not head.startswith(mark):
            continue
        if marked == encoding or (encoding in _MARKED_ENCODINGS and marked.startswith(encoding)):
            return marked, mark
        if marked == "utf-32-le" and encoding.startswith("utf-16"):
            continue  # the mark of UTF-16, and a NUL
        raise ConfigError(
            f"the input begins with the byte order mark of {marked}, and is to be read as "
            f"{encoding}: give --encoding {marked.removesuffix('-le').removesuffix('-be')}"
        )
    if encoding in _MARKED_ENCODINGS:
        raise ConfigError(
            f"the input has no byte order mark: give --encoding {encoding}-le or {encoding}-be"
        )
    return encoding, b""


def _split_lines(stream: BinaryIO, head: bytes, encoding: str) -> Iterator[bytes]:
    """Yield the lines of a stream, which begins with `head`, as bytes without their ends."""
    end, long_end = "\n".encode(encoding), "\r\n".encode(encoding)
    lines = (
        _iterate_lines_of_single_bytes(stream, head, end)
        if end == b"\n"
        else _iterate_lines_of_wide_characters(stream, head, end)
    )
    for line in lines:
        if len(line) % len(end):
            yield line  # the last one, which ends within a character
        elif line.endswith(long_end):
            yield line.removesuffix(long_end)
        else:
            yield line.removesuffix(end)


def _iterate_lines_of_single_bytes(stream: BinaryIO, head: bytes, end: bytes) -> Iterator[bytes]:
    """Yield lines with their ends, as soon as each is there."""
    if head.endswith(end):  # one end at most: the head was read no further
        yield head
        head = b""
    first = head + stream.readline()
    if first:
        yield first
    yield from stream


def _iterate_lines_of_wide_characters(stream: BinaryIO, head: bytes, end: bytes) -> Iterator[bytes]:
    """Yield lines with their ends, where a character has as many bytes as `end`, or a multiple."""
    width = len(end)
    rest, searched = head, 0
    while True:
        data = stream.read(_READ_BYTES)
        rest += data
        begin = 0
        while (found := rest.find(end, searched)) >= 0:
            if found % width:
                searched = found + 1
                continue
            yield rest[begin : found + width]
            begin = searched = found + width
        # A part of an end may stand last.
        rest, searched = rest[begin:], max(len(rest) - begin - width + 1, 0)
        if not data:
            break
    if rest:
        yield rest


def _decode_line(data: bytes, number: int, encoding: str) -> str:
    """Return the text of a line. Raises ConfigError naming the line."""
    try:
        return data.decode(encoding)
    except UnicodeError as error:
        found = ""
        if isinstance(error, UnicodeDecodeError):
            found = f": {data[error.start : error.start + 1]!r} at byte {error.start + 1}"
        raise ConfigError(
            f"line {number} is no {encoding}{found}; give the input's --encoding, as latin-1"
        ) from None
