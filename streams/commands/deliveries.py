"""Note which of the records of `millrace produce` the brokers have not acknowledged, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from streams.commands.offset_positions import current_time_ms
from streams.commands.record_encoding import EncodedRecord
from streams.commands.records import format_time
from streams.runtime.clients.error_codes import ErrorKind, find_error_kind

_AWAITED_RECORDS, _AWAITED_BYTES = 10_000, 64 << 20
"""The brokers are waited for after so many records, or so many bytes of keys and values."""
_UNKNOWN_OUTCOMES = {
    "NETWORK_EXCEPTION",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "REQUEST_TIMED_OUT",
}
"""Answers of brokers after which a record may be in the log."""
_OF_ANOTHER_RECORD = "_INVALID_DIFFERENT_RECORD"
"""librdkafka's error of a record whose batch is refused for another one."""
_NEVER_SENT = {"_PURGE_QUEUE", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", _OF_ANOTHER_RECORD}
"""Errors of librdkafka's own that are of records which are in no log."""


class Deliveries:
    """Holds which of the records, in the order of the input, brokers have not acknowledged.

    `unit` is what the input consists of, lines or records; `first` is the number of the first one.
    The records themselves are kept until the brokers were waited for.
    """

    def __init__(self, unit: str, first: int = 1) -> None:
        self.sent_count = 0
        self.failures: dict[int, Any] = {}
        self.awaited: dict[int, EncodedRecord] = {}
        """The records that were sent since the brokers were waited for, by index."""
        self.largest_ms = 0
        self.refusal = ""
        """The record that brokers have refused, and why; empty if that is not known."""
        self._awaited_bytes = 0
        self._unit = unit
        self._first = first

    def create_delivery_callback(self, index: int) -> Callable[[Any, Any], None]:
        """Return the callback for the delivery report of the record at an index."""
        return partial(self._note_delivery_report, index)

    def _note_delivery_report(self, index: int, error: Any, _: Any) -> None:
        """Note a delivery report of the record at an index."""
        if error is not None:
            self.failures[index] = error

    def record_sent(self, record: EncodedRecord) -> None:
        """Note that the producer has taken the next record."""
        self.awaited[self.sent_count] = record
        self._awaited_bytes += len(record.key or b"") + len(record.value or b"")
        self.sent_count += 1
        self.largest_ms = max(self.largest_ms, record.timestamp_ms or 0)

    @property
    def is_wait_due(self) -> bool:
        """Return whether so much was sent that the brokers are to be waited for."""
        return len(self.awaited) >= _AWAITED_RECORDS or self._awaited_bytes >= _AWAITED_BYTES

    def release_awaited_records(self) -> None:
        """Release the records that all are acknowledged."""
        self.awaited.clear()
        self._awaited_bytes = 0

    def find_refused_indexes(self) -> list[int]:
        """Return the records of refused batches, by index."""
        return sorted(index for index in self.failures if self._is_refused_record(index))

    def _is_refused_record(self, index: int) -> bool:
        kind = find_error_kind(self.failures[index].code())
        return index in self.awaited and kind is ErrorKind.RECORD

    def find_culprit_index(self) -> int | None:
        """Return the record for which a batch was refused, by index; None if that is not known.

        Newer brokers name the records for which they refuse a batch (KIP-467).
        """
        named = [
            i for i in self.find_refused_indexes() if self.failures[i].name() != _OF_ANOTHER_RECORD
        ]
        return named[0] if len(named) == 1 else None

    def has_later_written_of_key(self, index: int, *, is_one_partition: bool) -> bool:
        """Return whether a later record was written that has to stay behind this one.

        That is one of the same key, or any one if all go to one partition, or there is no key.
        """
        key = None if is_one_partition else self.awaited[index].key
        return any(
            later > index and later not in self.failures and (key is None or record.key == key)
            for later, record in self.awaited.items()
        )

    def explain_failures(self) -> str:
        """Return how many records were not delivered, why, and what to do where that is known."""
        failures = self.failures
        if self.refusal:
            failures = {i: each for i, each in failures.items() if not self._is_refused_record(i)}
            if not failures:
                return self.refusal
        reasons = ", ".join(sorted({each.str() for each in failures.values()}))
        if self.refusal:
            return f"{self.refusal}; {len(failures)} not delivered: {reasons}"
        names = {each.name() for each in self.failures.values()}
        hint = _explain_early_records(names, self.largest_ms)
        return f"{len(self.failures)} not delivered: {reasons}{self._name_refused_lines()}{hint}"

    def _name_refused_lines(self) -> str:
        """Name the lines among which is the record that a broker has refused; empty if none is."""
        if not (refused := self.find_refused_indexes()):
            return ""
        first, last = (self.awaited[index].place for index in (refused[0], refused[-1]))
        return f" (a broker refuses a batch for one record, {first} to {last})"

    def explain_progress(self) -> str:
        """Explain how many records were written before the first failed one, and how to go on."""
        count = min(self.failures, default=self.sent_count)
        later_count = self.sent_count - count - len(self.failures)
        unknown_count = sum(map(_may_be_written, self.failures.values()))
        if not (count or later_count or unknown_count):
            return "nothing was written"
        following = self._first + count
        text = f"{_count_records(count)} written, the next is {self._unit} {following}"
        if self._unit == "line":
            text += f": go on with --from-line {following}"
        if later_count:
            text += f"; of those after it {_count_records(later_count)} written already"
        if unknown_count:
            text += f"; {unknown_count} of those that were not acknowledged may be written as well"
        return text


def _count_records(count: int) -> str:
    """Return a number of records with the verb that belongs to it."""
    return f"{count} record was" if count == 1 else f"{count} records were"


def _may_be_written(error: Any) -> bool:
    """Return whether a broker may have a record that failed with this error."""
    name = error.name()
    if error.code() > 0:  # the answer of a broker
        return name in _UNKNOWN_OUTCOMES
    return name not in _NEVER_SENT


def _explain_early_records(error_names: Collection[str], largest_ms: int) -> str:
    """Return what to do if brokers refused records that have times ahead of now; else nothing.

    Brokers answer INVALID_TIMESTAMP, or INVALID_RECORD for a batch with such a record.
    """
    ahead_ms = largest_ms - current_time_ms()
    is_refused = {"INVALID_RECORD", "INVALID_TIMESTAMP"} & set(error_names)
    if not is_refused or ahead_ms <= 0:
        return ""
    return (
        f"; their largest timestamp, {format_time(largest_ms)} (@{largest_ms}), is "
        f"{ahead_ms / 1_000:.0f} s ahead of now, and a topic takes no more than its "
        "message.timestamp.after.max.ms (3600000 unless it is set): give earlier times, or give "
        "the topic a larger one"
    )
