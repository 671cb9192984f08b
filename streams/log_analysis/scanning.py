"""Find the lines of a log that have a pattern.

re2 searches a block for all patterns at once. Only a line with one is decoded, classified and
compared with the level that its pattern needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from streams.log_analysis.events import LogEvent, find_application_or_group, find_subjects
from streams.log_analysis.headers import HEADER_START, LineHeader, read_header
from streams.log_analysis.patterns import (
    LAST_LINE,
    OWN_PATTERNS,
    PATTERNS,
    EventKind,
    Pattern,
    find_code_pattern,
)

_LOOK_BACK_BYTES = 64 << 10
"""The bytes before a continued line in which its first line is looked for."""
_MESSAGE_CHARS_MAX = 400
_CONTROLLER_LINK = "[BrokerLifecycleManager "
"""Begins lines of Kafka's about a broker and its controller. Their time-outs, as at a start, are of
no application."""


@cache
def compile_patterns() -> Any:
    """Compile all patterns into one expression."""
    import re2

    texts = sorted({each.text for each in (*PATTERNS, *OWN_PATTERNS)})
    return re2.compile(b"|".join(re2.escape(text).encode() for text in texts))


class LogScanner:
    """Finds the events of one log, block by block."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._owner: str | None = None
        self._header: LineHeader | None = None
        """The header of the last line before the block that had one, as far as it was read."""

    def find_events(self, block: bytes) -> Iterator[LogEvent]:
        """Yield the events of the next block, in the order of its lines."""
        end = -1
        for found in compile_patterns().finditer(block):
            if found.start() < end:
                continue
            begin = block.rfind(b"\n", 0, found.start()) + 1
            end = block.find(b"\n", found.start())
            end = len(block) if end < 0 else end
            event = self._read_event(block, begin, end)
            if event is not None:
                yield event
        self._header = self._find_header(block, len(block))

    def _read_event(self, block: bytes, begin: int, end: int) -> LogEvent | None:
        """Return the event of a line, None for a line that names a fault only in passing."""
        line = block[begin:end]
        header = read_header(line)
        if header is None:
            before = self._find_header(block, begin)
            if before is not None and _CONTROLLER_LINK in before.message:
                return None
            at_s = before.at_s if before is not None else None
            is_last = line.startswith(LAST_LINE.encode())
            message = line.decode(errors="replace").strip()
            is_ambiguous = before is not None and before.is_ambiguous
            header = LineHeader(at_s, is_last, message, is_last, is_ambiguous)
        pattern = find_pattern(header)
        if pattern is None:
            return None
        owner = find_application_or_group(header.message)
        if pattern.kind is EventKind.START and owner is not None:
            self._owner = owner
        return LogEvent(
            pattern,
            header.at_s,
            self._source,
            header.message[:_MESSAGE_CHARS_MAX],
            owner or self._owner,
            find_subjects(header.message),
            header.is_ambiguous,
            header.process,
        )

    def _find_header(self, block: bytes, before: int) -> LineHeader | None:
        """Return the header of the last line before a place that has one."""
        end, limit = before, max(0, before - _LOOK_BACK_BYTES)
        while end > limit:
            before_line = block.rfind(b"\n", limit, end - 1)
            if before_line < 0 and limit:
                break
            begin = before_line + 1
            if HEADER_START.match(block, begin, end):
                return read_header(block[begin:end].rstrip(b"\n"))
            end = begin
        return self._header


def find_pattern(header: LineHeader) -> Pattern | None:
    """Return the pattern that a line has, if its level is high enough: that of its code, if any."""
    if _CONTROLLER_LINK in header.message:
        return None
    if header.is_warning and (named := find_code_pattern(header.message)) is not None:
        return named
    for pattern in OWN_PATTERNS if header.is_ours else PATTERNS:
        if pattern.text in header.message and (header.is_warning or not pattern.is_warning):
            return pattern
    return None
