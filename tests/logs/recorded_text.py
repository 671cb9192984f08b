"""Keep of a log what a test needs: its lines, without what names the machine."""

from __future__ import annotations

import getpass
import gzip
import re
import socket
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"
LINES_MAX = 400
_PATH = re.compile(r"(?:/[\w.@+-]+){2,}")
_KEPT_PATHS = ("/health", "/live", "/metrics")


def keep_log(name: str, text: str) -> int:
    """Write the recording `name` and return its number of lines.

    Of a longer log its first and last lines are kept: in between it repeats itself.
    """
    lines = [clean_line(each) for each in text.splitlines()]
    if len(lines) > LINES_MAX:
        half = LINES_MAX // 2
        lines = [*lines[:half], *lines[-half:]]
    RECORDED.mkdir(exist_ok=True)
    data = ("\n".join(lines) + "\n").encode()
    (RECORDED / f"{name}.log.gz").write_bytes(gzip.compress(data, mtime=0))
    return len(lines)


def clean_line(line: str) -> str:
    """Return a line without paths, but for their last part, and without the machine's name."""
    for name in {socket.gethostname(), socket.getfqdn()} - {"localhost"}:
        line = line.replace(name, "host-1")
    line = re.sub(rf"\b(user[=:. ]+){re.escape(getpass.getuser())}\b", r"\1somebody", line)
    return _PATH.sub(_shorten_path, line)


def _shorten_path(found: re.Match[str]) -> str:
    path = found[0]
    if path.endswith(_KEPT_PATHS):
        return path
    return "/srv/" + path.rpartition("/")[2]


def read_recording(name: str) -> list[str]:
    """Return the lines of a recording."""
    return gzip.decompress((RECORDED / f"{name}.log.gz").read_bytes()).decode().splitlines()
