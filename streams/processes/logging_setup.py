"""Configure the log of a worker process: its level, its format, and what is folded in it.

librdkafka logs each attempt of each client to connect while a broker is away, which
`streams.membership.broker_outage` tells once. So its lines about attempts are shown at level debug
only, and of its other errors each is shown once in a while, with the number of those like it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson

from streams.runtime.clients.errors import librdkafka_log
from streams.settings.config import LogFormat, LogLevel

OUR_LOGGERS = ("streams", "state")
_TEXT_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_FOLD_S = 60.0
_STANDARD_FIELDS = frozenset(
    {*vars(logging.LogRecord("", 0, "", 0, "", (), None)), "message", "asctime", "taskName"}
)


def configure_logging(level: LogLevel, log_format: LogFormat) -> None:
    """Write log lines to standard error, from `level` on, in a format for people or for programs.

    A second call changes both. What the process has configured by itself before the first call
    stays as it is. The loggers of other libraries begin at INFO, whatever is asked for.
    """
    root = logging.getLogger()
    ours = next((each for each in root.handlers if isinstance(each, _WorkerLogHandler)), None)
    if ours is None:
        if root.handlers:
            return
        ours = _WorkerLogHandler()
        root.addHandler(ours)
    ours.setFormatter(JsonFormatter() if log_format == "json" else logging.Formatter(_TEXT_FORMAT))
    threshold = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(max(threshold, logging.INFO))
    for name in OUR_LOGGERS:
        logging.getLogger(name).setLevel(threshold)
    for added in [each for each in librdkafka_log.filters if isinstance(each, RepeatFilter)]:
        librdkafka_log.removeFilter(added)
    librdkafka_log.setLevel(logging.NOTSET)
    if threshold > logging.DEBUG:
        librdkafka_log.setLevel(max(threshold, logging.WARNING))  # its errors are warnings
        librdkafka_log.addFilter(RepeatFilter())


def logs_json() -> bool:
    """Return whether the log of this process is for programs, so that all lines of it are to be."""
    return any(isinstance(each.formatter, JsonFormatter) for each in logging.getLogger().handlers)


class JsonFormatter(logging.Formatter):
    """Formats a log line as a JSON object, with the fields that its caller has given as `extra`.

    The fields are time (UTC), level, logger, process, thread and message; `error` is a traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        line |= {
            name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class RepeatFilter(logging.Filter):
    """Drops librdkafka's attempts to connect, and of lines that are alike all but one a minute.

    Lines are alike that differ in numbers only, or in the client that logs them.
    """

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic_s = monotonic_s
        self._shown: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is shown; its message then says how many before it were not."""
        message = record.getMessage()
        if "Connect to " in message or "Connection setup timed out" in message:
            return False
        kind = re.sub(r"\d+", "#", message.rpartition("]: ")[2])
        now_s = self._monotonic_s()
        shown_at_s, dropped_count = self._shown.get(kind, (-_FOLD_S, 0))
        if now_s - shown_at_s < _FOLD_S:
            self._shown[kind] = (shown_at_s, dropped_count + 1)
            return False
        self._shown[kind] = (now_s, 0)
        if dropped_count:
            record.msg = f"{message} ({dropped_count} more like it since the last one)"
            record.args = ()
        return True


class _WorkerLogHandler(logging.StreamHandler[Any]):
    """Writes the log of a worker to standard error, as `configure_logging` has set it up."""
