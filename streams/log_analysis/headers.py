"""Read time, level and message of a log line.

    ours        2026-11-29 04:53:56,862 15092 WARNING streams.x: message
    ours, JSON  {"time":"2026-11-29T04:54:18.724Z","level":"warning",...,"message":"..."}
    log4j       [2026-11-29 05:18:35,019] INFO message (org.apache.kafka.X)
    logback     2026-11-29 05:18:35.019 [thread] INFO  org.apache.kafka.X - message

Times without a zone are taken as they are, JSON's are converted to this machine's zone.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

import orjson

_TIME = re.compile(
    rb"^\[?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,:](\d{1,6}))?(Z|[+-]\d\d:?\d\d)?"
)
_PROCESS = re.compile(rb" (\d+) $")
_JSON_TIME = re.compile(rb'^\{"time":"([^"]{19,32})"')
_LEVEL = re.compile(rb"\b(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b")
_LEVEL_BYTES = 200
_OUR_LOGGERS = ("streams.", "state.")
_WARNINGS = {"WARN", "WARNING", "ERROR", "FATAL", "CRITICAL"}
HEADER_START = re.compile(rb'\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|\{"time":"')
"""Begins a line that is no continuation, such as one of a stack trace."""


class LineHeader(NamedTuple):
    """Holds the time in s since 1970, None if it is not known, and whether it is a warning.

    `is_ours`: a logger of ours has written it, and no broker and no Kafka Streams. `is_ambiguous`:
    its time has no zone, and comes twice, in the hour that is repeated when summer time ends; then
    `at_s` is the first one. `process` is the id of the process, where the line has it.
    """

    at_s: float | None
    is_warning: bool
    message: str
    is_ours: bool = False
    is_ambiguous: bool = False
    process: int | None = None


def read_header(line: bytes) -> LineHeader | None:
    """Return the header that a log line begins with; None for a continuation line."""
    if line.startswith(b'{"'):
        return _read_json(line)
    found = _TIME.match(line)
    if found is None:
        return None
    zone = (found[4] or b"").decode()
    text = f"{found[1].decode()} {found[2].decode()}{zone}"
    fraction = float(f"0.{found[3].decode()}") if found[3] else 0.0
    level = _LEVEL.search(line, found.end(), found.end() + _LEVEL_BYTES)
    name = level[1].decode() if level else ""
    message = line[level.end() if level else found.end() :].decode(errors="replace").strip(" ]")
    process = _PROCESS.search(line, found.end(), level.start()) if level else None
    at = _parse_time(text)
    return LineHeader(
        None if at is None else at.timestamp() + fraction,
        name in _WARNINGS,
        message,
        message.startswith(_OUR_LOGGERS),
        at is not None and is_ambiguous_local_time(at),
        int(process[1]) if process else None,
    )


def _parse_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def is_ambiguous_local_time(at: datetime) -> bool:
    """Return whether a time without a zone comes twice, as summer time ends in this machine's.

    One that does not come at all, as summer time begins, is later by the first reading.
    """
    return at.tzinfo is None and at.timestamp() < at.replace(fold=1).timestamp()


def _read_json(line: bytes) -> LineHeader | None:
    """Return the header of a line of JSON, also of one that was cut off."""
    try:
        fields = orjson.loads(line)
        level = str(fields.get("level", "")).upper()
        at = datetime.fromisoformat(str(fields["time"]))
        message = str(fields.get("message", ""))
    except (orjson.JSONDecodeError, KeyError, ValueError, AttributeError):
        found = _JSON_TIME.match(line)
        if found is None:
            return None
        return LineHeader(None, False, line.decode(errors="replace"))
    if fields.get("code"):
        message += f" (see {fields['code']})"
    if fields.get("error"):
        message += " " + " ".join(str(fields["error"]).split())
    is_ours = str(fields.get("logger", "")).startswith(_OUR_LOGGERS)
    process = fields.get("process")
    return LineHeader(
        *(at.timestamp(), level in _WARNINGS, message, is_ours, is_ambiguous_local_time(at)),
        process if isinstance(process, int) else None,
    )
