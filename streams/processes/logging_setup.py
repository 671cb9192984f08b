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
from streams.settings.choices import LogFormat, LogLevel
from streams.symptoms.lookup import (
    choose_symptom,
    find_by_class,
    find_by_code,
    format_page_address,
)
from streams.symptoms.symptom import Symptom

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
        ours.addFilter(SymptomFilter())
        root.addHandler(ours)
    ours.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter(_TEXT_FORMAT))
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


class SymptomFilter(logging.Filter):
    """Gives each line of ours from WARNING on the code of its symptom, as the attribute `code`.

    Lines that name no fault have none. `error_class` is what a call gives as `extra` that logs the
    text of an error and not the error.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Set the code of a line, and return that it is shown."""
        if record.levelno >= logging.WARNING and not hasattr(record, "code"):
            symptom = _find_symptom(record)
            if symptom is not None:
                record.code = symptom.code
        vars(record).pop("error_class", None)
        return True


def _find_symptom(record: logging.LogRecord) -> Symptom | None:
    """Return the symptom that a line names by its message, or by the error that it is about."""
    values = record.args.values() if isinstance(record.args, dict) else record.args or ()
    classes = [type(each) for each in values if isinstance(each, BaseException)]
    given = getattr(record, "error_class", None)
    raised = record.exc_info[0] if record.exc_info else None
    found = (find_by_class(each) for each in (given, *classes, raised) if each is not None)
    by_class = next((each for each in found if each is not None), None)
    return choose_symptom(record.getMessage(), by_class)


class TextFormatter(logging.Formatter):
    """Formats a log line as text, which ends with the address of its page: `(see MR-012)`.

    Of a message of several lines, as one with a stack, the first has it.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        code = getattr(record, "code", None)
        address = "" if code is None else format_page_address(find_by_code(code))
        first, end, more = super().formatMessage(record).partition("\n")
        return f"{first}{address}{end}{more}"


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
