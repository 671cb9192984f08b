"""Build dead letters: the record as it was read, with headers that say what was wrong (KIP-1034).

A dead letter keeps the time of its record, also none at all (-1) and times before 1970. 0 ms alone
can't be written: librdkafka takes it for no time and writes the present one. So 1 ms is written,
and a header has the record's own.
"""

from __future__ import annotations

import traceback
from typing import Any

from state.shown_values import read_text_safely
from streams.common.message_headers import Header
from streams.settings.exception_handlers import ErrorContext

_FIRST_MS = 1
_BY_KEY = -1


def create_dead_letter(failure: ErrorContext) -> tuple[Any, ...]:
    """Return a failure's dead letter as the arguments of `Producer.produce` after the topic."""
    headers = [*failure.headers, *create_error_headers(failure)]
    time_ms = failure.timestamp_ms
    if time_ms == 0:
        headers.append(("__streams.errors.timestamp", b"0"))
        time_ms = _FIRST_MS
    return failure.source_value, failure.source_key, _BY_KEY, None, None, time_ms, headers


def create_error_headers(failure: ErrorContext) -> list[Header]:
    """Return the headers of a dead letter, with Kafka Streams' names (ExceptionHandlerUtils).

    The values are strings as bytes, None if unknown.
    """
    error = failure.error
    kind = type(error)
    stack = "".join(traceback.format_exception(error))
    texts = {
        "exception": f"{kind.__module__}.{kind.__qualname__}",
        "message": read_text_safely(error),
        "stacktrace": stack,
        "topic": failure.topic,
        "partition": str(failure.partition),
        "offset": str(failure.offset),
    }
    return [
        (f"__streams.errors.{name}", None if text is None else text.encode(errors="replace"))
        for name, text in texts.items()
    ]
