"""Keep which rows brokers have refused: a transaction only says that it can't go on.

librdkafka reports failures only, so that a row that is delivered costs nothing here. A broker
refuses a batch as a whole: the row that is most likely the reason is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from streams.errors import StreamsError
from streams.runtime.clients.error_codes import ErrorKind, find_error_kind

_SHOWN_BYTES = 32
_TIME_REMEDY = (
    "a topic takes no times further ahead of now than its message.timestamp.after.max.ms (3600000 "
    "unless it is set)"
)
_REMEDIES = {
    "MSG_SIZE_TOO_LARGE": "give the topic a larger max.message.bytes, and the write a larger "
    "option kafka.message.max.bytes; or leave the row out",
    "INVALID_TIMESTAMP": _TIME_REMEDY,
    "INVALID_RECORD": f"a compacted topic takes no row without a key, and {_TIME_REMEDY}",
}


class _Row(NamedTuple):
    """Represents a refused row. Delivery reports of failures don't have its time."""

    error: Any
    key: bytes | None
    value: bytes | None

    def rank_as_reason(self) -> int:
        """Return how likely the row is the reason for its error, among rows of one batch."""
        if self.error.name() == "INVALID_RECORD":
            return self.key is None
        return len(self.key or b"") + len(self.value or b"")


class RefusedRows:
    """Collects rows that brokers, or the producer, refuse for what they are."""

    def __init__(self) -> None:
        self._count = 0
        self._reason: _Row | None = None
        self.largest_ms: int | None = None
        """The largest time of all rows that were produced, in ms since 1970; None without any."""

    @property
    def settings(self) -> dict[str, Any]:
        """Return the producer's settings by which it reports failures here."""
        return {"delivery.report.only.error": True, "on_delivery": self.note_failure}

    def add_times(self, times_ms: Sequence[int | None] | None) -> None:
        """Take the times of rows that are to be produced."""
        largest_ms = max(filter(None, times_ms or ()), default=None)
        if largest_ms is not None:
            self.largest_ms = max(self.largest_ms or largest_ms, largest_ms)

    def note_failure(self, error: Any, message: Any) -> None:
        """Record the row of a failed delivery report as a reason of refusal."""
        if error is not None:
            self.note_refusal(error, message.key(), message.value())

    def note_exception(self, error: Exception, key: bytes | None, value: bytes | None) -> None:
        """Take a row at which `produce` raised an error, if that is a client's."""
        cause = error.args[0] if error.args else None
        if hasattr(cause, "code"):
            self.note_refusal(cause, key, value)

    def note_refusal(self, error: Any, key: bytes | None, value: bytes | None) -> None:
        """Take a row that failed, if the error is about the row itself."""
        if find_error_kind(error.code()) is ErrorKind.RECORD:
            self._count += 1
            row = _Row(error, key, value)
            if self._reason is None or row.rank_as_reason() > self._reason.rank_as_reason():
                self._reason = row

    def raise_if_any(self, doing: str) -> None:
        """Raise StreamsError if a row was refused; `doing` says what is not done therefore."""
        if self._reason is None:
            return
        error, key, value = self._reason
        count = self._count
        which = "a row" if count == 1 else f"{count} rows, this one most likely being the reason"
        remedy = _REMEDIES.get(error.name())
        raise StreamsError(
            f"{doing} is not written: brokers refuse {which}: {error.str()} ({error.name()}). Its "
            f"key is {_shorten_bytes(key)}, its value {_shorten_bytes(value)}"
            + ("" if self.largest_ms is None else f"; the largest time is {self.largest_ms} ms")
            + (f"; {remedy}" if remedy else "")
        )


def _shorten_bytes(data: bytes | None) -> str:
    """Return the beginning of bytes with their number, or null."""
    if data is None:
        return "null"
    return f"{data[:_SHOWN_BYTES]!r} of {len(data)} bytes"
