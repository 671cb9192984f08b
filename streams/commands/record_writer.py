"""Write the records of `millrace produce`, and tell how many were written where that ends early.

Without a transaction the number that is told is that of the records that brokers have acknowledged,
counted from the first one to the first that was not: whoever goes on with the next line leaves none
out. With a transaction all records are written, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from streams.command_lines import format_command
from streams.commands.offset_positions import current_time_ms
from streams.commands.record_encoding import EncodedRecord
from streams.commands.records import format_time
from streams.errors import ConfigError, OutcomeUnknown, TaskMigrated, UserError
from streams.runtime.clients import StreamsProducer
from streams.runtime.clients.producer import translate_produce_error

_FLUSH_RECORDS = 10_000
"""The brokers are waited for after so many records."""
_UNKNOWN_OUTCOMES = {
    "NETWORK_EXCEPTION",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "REQUEST_TIMED_OUT",
}
"""Answers of brokers after which a record may be in the log."""
_NEVER_SENT = {"_PURGE_QUEUE", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}
"""Errors of librdkafka's own that are of records which it has sent to no broker."""


class Deliveries:
    """Holds which of the records, in the order of the input, brokers have not acknowledged.

    `unit` is what the input consists of, lines or records; `first` is the number of the first one.
    Only failures are reported by the client, so that a record that is written costs nothing.
    """

    def __init__(self, unit: str, first: int = 1) -> None:
        self.sent_count = 0
        self.failures: dict[int, Any] = {}
        self.largest_ms = 0
        self._unit = unit
        self._first = first

    def create_report(self) -> Callable[[Any, Any], None]:
        """Return the callback for the delivery report of the record that is sent next."""
        return partial(self._note_report, self.sent_count)

    def _note_report(self, index: int, error: Any, _: Any) -> None:
        """Note a delivery report of the record at an index."""
        if error is not None:
            self.failures[index] = error

    def explain_failures(self) -> str:
        """Return how many records were not delivered, why, and what to do where that is known."""
        reasons = ", ".join(sorted({each.str() for each in self.failures.values()}))
        names = {each.name() for each in self.failures.values()}
        hint = _explain_early_records(names, self.largest_ms)
        return f"{len(self.failures)} not delivered: {reasons}{hint}"

    def explain_progress(self) -> str:
        """Return what was written up to the first record that was not, and how to go on."""
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


def write_records(
    producer: StreamsProducer,
    topic: str,
    records: Iterable[EncodedRecord],
    fields: dict[str, Any],
    deliveries: Deliveries,
) -> int:
    """Write records, wait until the brokers have them, and return their number.

    `fields` is what all records have, as arguments of the producer. Raises UserError, which says
    what was written, if one of them can't be read, encoded or delivered, and at Ctrl-C.
    """
    deliveries.largest_ms = fields.get("timestamp", 0)
    try:
        for record in records:
            fields["on_delivery"] = deliveries.create_report()
            _produce_record(producer, topic, record, fields)
            deliveries.sent_count += 1
            deliveries.largest_ms = max(deliveries.largest_ms, record.timestamp_ms or 0)
            if deliveries.sent_count % _FLUSH_RECORDS == 0:
                _await_deliveries(producer, deliveries)
        _await_deliveries(producer, deliveries)
    except (UserError, OutcomeUnknown, KeyboardInterrupt) as error:
        if not isinstance(error, OutcomeUnknown):
            with suppress(OutcomeUnknown):
                producer.flush()
        producer.purge_outstanding()
        reasons = [str(error) or "interrupted"]
        if deliveries.failures and not isinstance(error, OutcomeUnknown):
            reasons.append(deliveries.explain_failures())
        raise ConfigError("; ".join([*reasons, deliveries.explain_progress()])) from error
    return deliveries.sent_count


def _await_deliveries(producer: StreamsProducer, deliveries: Deliveries) -> None:
    """Wait until the brokers have all records that were sent. Raises OutcomeUnknown."""
    producer.flush()
    if deliveries.failures:
        raise OutcomeUnknown(deliveries.explain_failures())


def write_in_transaction(
    producer: StreamsProducer, topic: str, records: Iterable[EncodedRecord], fields: dict[str, Any]
) -> int:
    """Write records in one transaction, commit it, and return their number.

    Raises UserError if that failed, which says whether anything was written.
    """
    count = 0
    producer.begin_transaction()
    try:
        for record in records:
            _produce_record(producer, topic, record, fields)
            count += 1
    except BaseException as error:
        producer.close()
        if not isinstance(error, UserError | OutcomeUnknown | TaskMigrated | KeyboardInterrupt):
            raise
        raise ConfigError(f"{_explain_failure(error)}; nothing was written") from error
    if not count:
        return 0
    try:
        producer.commit_transaction()
    except (UserError, OutcomeUnknown, TaskMigrated, KeyboardInterrupt) as error:
        # A commit that may have reached its coordinator can't be followed by an abort: librdkafka
        # refuses it. So the transaction is certainly aborted if this succeeds.
        is_aborted = producer.close() or isinstance(error, TaskMigrated)
        outcome = (
            "nothing was written"
            if is_aborted
            else f"whether the {count} records were written is not known: read the topic by "
            f"{format_command('consume', topic)} before they are written again"
        )
        raise ConfigError(f"{_explain_failure(error)}; {outcome}") from error
    return count


def _explain_failure(error: BaseException) -> str:
    """Return the reason for which a transaction was not committed."""
    if isinstance(error, TaskMigrated):
        return f"the transaction took longer than brokers let it ({error})"
    return str(error) or "interrupted"


def _produce_record(
    producer: StreamsProducer,
    topic: str,
    record: EncodedRecord,
    fields: dict[str, Any],
) -> None:
    """Hand a record to the producer, as soon as its queue has room.

    Raises UserError for a record that it refuses, naming its place in the input.
    """
    if record.timestamp_ms is not None:
        fields["timestamp"] = record.timestamp_ms
    try:
        try:
            producer.produce(topic, value=record.value, key=record.key, **fields)
        except BufferError:
            producer.wait_for_queue_room()
            producer.produce(topic, value=record.value, key=record.key, **fields)
    except Exception as error:
        refusal = translate_produce_error(error, "produce", topic)
        if refusal is None:
            raise
        raise ConfigError(f"{record.place}: {refusal}") from error
