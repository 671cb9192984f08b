"""Write the records of `millrace produce`, and tell how many were written where that ends early.

Without a transaction the number that is told is that of the records that brokers have acknowledged,
counted from the first one to the first that was not: whoever goes on with the next line leaves none
out. With a transaction all records are written, or none.

A record that the topic's settings exclude is refused before it is sent. Where these are not known,
or don't decide it, a broker refuses a whole batch, and its records are written again one by one to
find the one that it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from streams.command_lines import format_command
from streams.commands.deliveries import Deliveries
from streams.commands.record_encoding import EncodedRecord
from streams.commands.record_limits import RecordLimits
from streams.errors import ConfigError, OutcomeUnknown, TaskMigrated, UserError, WriteRefused
from streams.runtime.clients import StreamsProducer
from streams.runtime.clients.producer_errors import translate_produce_error

WrittenCount: TypeAlias = int

HasFailedAgain: TypeAlias = bool

_ERRORS = (UserError, OutcomeUnknown, TaskMigrated, WriteRefused, KeyboardInterrupt)


class RecordWriter:
    """Writes records to a topic with a producer of their own.

    `fields` is what all records have, as arguments of the producer; `limits` what the topic takes.
    """

    def __init__(
        self, producer: StreamsProducer, topic: str, fields: dict[str, Any], limits: RecordLimits
    ) -> None:
        self._producer, self._topic, self._limits = producer, topic, limits
        self._fields = dict(fields)

    def write_records(
        self, records: Iterable[EncodedRecord], unit: str, first: int = 1
    ) -> WrittenCount:
        """Write records, wait until the brokers have them, and return their number.

        `unit` and `first` say how they are counted, as in Deliveries. Raises UserError, which says
        what was written, if one of them can't be read, encoded or delivered, and at Ctrl-C.
        """
        deliveries = Deliveries(unit, first)
        deliveries.largest_ms = self._fields.get("timestamp", 0)
        try:
            for record in records:
                self._send_record(record, deliveries)
                if deliveries.is_wait_due:
                    self._await_deliveries(deliveries)
            self._await_deliveries(deliveries)
        except (UserError, OutcomeUnknown, KeyboardInterrupt) as error:
            if not isinstance(error, OutcomeUnknown):
                with suppress(OutcomeUnknown):
                    self._producer.flush()
                    if not isinstance(error, KeyboardInterrupt):
                        self._retry_refused_one_by_one(deliveries)
            self._producer.purge_outstanding_records()
            reasons = [str(error) or "interrupted"]
            if deliveries.failures and not isinstance(error, OutcomeUnknown):
                reasons.append(deliveries.explain_failures())
            raise ConfigError("; ".join([*reasons, deliveries.explain_progress()])) from error
        return deliveries.sent_count

    def _await_deliveries(self, deliveries: Deliveries) -> None:
        """Wait until the brokers have all records that were sent. Raises OutcomeUnknown."""
        self._producer.flush()
        self._retry_refused_one_by_one(deliveries)
        if deliveries.failures:
            raise OutcomeUnknown(deliveries.explain_failures())
        deliveries.release_awaited_records()

    def _retry_refused_one_by_one(self, deliveries: Deliveries) -> None:
        """Write the records of refused batches one by one, in their order, up to a refused one.

        None is written behind later ones of its key. Raises OutcomeUnknown without an answer.
        """
        refused = deliveries.find_refused_indexes()
        culprit = deliveries.find_culprit_index()
        for index in refused if len(refused) > 1 else ():
            if deliveries.has_later_written_of_key(
                index, is_one_partition="partition" in self._fields
            ):
                break
            if self._retry_alone(index, deliveries):
                culprit = index
                break
        self._record_refusal_reason(culprit, deliveries)

    def _retry_alone(self, index: int, deliveries: Deliveries) -> HasFailedAgain:
        """Write a record of a refused batch alone, and return whether it failed again."""
        record = deliveries.awaited[index]
        error = deliveries.failures.pop(index)
        try:
            self._produce_when_room(index, record, deliveries)
            self._producer.flush()
        except Exception:
            deliveries.failures.setdefault(index, error)
            raise
        return index in deliveries.failures

    def _record_refusal_reason(self, index: int | None, deliveries: Deliveries) -> None:
        """Note which record was refused, and why, if that is known and not a lost answer."""
        if index is not None and index in deliveries.find_refused_indexes():
            record = deliveries.awaited[index]
            reason = self._limits.explain_refused(deliveries.failures[index], record)
            deliveries.refusal = f"{record.place}: {reason}"

    def write_in_transaction(self, records: Iterable[EncodedRecord]) -> WrittenCount:
        """Write records in one transaction, commit it, and return their number.

        Raises UserError if that failed, which says whether anything was written.
        """
        deliveries = Deliveries("record")
        self._producer.begin_transaction()
        try:
            for record in records:
                self._send_record(record, deliveries)
                if deliveries.is_wait_due:
                    self._await_in_transaction(deliveries)
            if deliveries.sent_count:
                self._await_in_transaction(deliveries)
        except BaseException as error:
            refusal = (
                ""
                if isinstance(error, KeyboardInterrupt)
                else self._explain_refused_record(deliveries)
            )
            self._producer.try_abort_and_close()
            if not isinstance(error, _ERRORS):
                raise
            reason = refusal or _explain_failure(error)
            raise ConfigError(f"{reason}; nothing was written") from error
        if deliveries.sent_count:
            self._commit_transaction(deliveries.sent_count)
        return deliveries.sent_count

    def _await_in_transaction(self, deliveries: Deliveries) -> None:
        """Wait for the brokers. Raises WriteRefused if they have refused a record."""
        self._producer.flush()
        if deliveries.find_refused_indexes():
            raise WriteRefused(deliveries.explain_failures())
        if not deliveries.failures:  # else the commit says what became of the transaction
            deliveries.release_awaited_records()

    def _explain_refused_record(self, deliveries: Deliveries) -> str:
        """Return which record of a transaction brokers have refused, and why; empty if none.

        The records of the refused batch are written one by one in a transaction that is aborted.
        """
        self._producer.poll_delivery_reports()
        refused, culprit = deliveries.find_refused_indexes(), deliveries.find_culprit_index()
        with suppress(UserError, OutcomeUnknown, TaskMigrated, WriteRefused):
            if culprit is None and refused:
                self._producer.abort_transaction()
                self._producer.begin_transaction()
                again = (each for each in refused if self._retry_alone(each, deliveries))
                culprit = next(again, None)
        self._record_refusal_reason(culprit, deliveries)
        return deliveries.refusal or (deliveries.explain_failures() if refused else "")

    def _commit_transaction(self, count: int) -> None:
        """Commit the transaction. Raises ConfigError, which says what became of the records."""
        try:
            self._producer.commit_transaction()
        except _ERRORS as error:
            # A commit that may have reached its coordinator can't be followed by an abort:
            # librdkafka refuses it. So the transaction is certainly aborted if this succeeds.
            is_aborted = self._producer.try_abort_and_close() or isinstance(error, TaskMigrated)
            outcome = (
                "nothing was written"
                if is_aborted
                else f"whether the {count} records were written is not known: read the topic by "
                f"{format_command('consume', self._topic)} before they are written again"
            )
            raise ConfigError(f"{_explain_failure(error)}; {outcome}") from error

    def _send_record(self, record: EncodedRecord, deliveries: Deliveries) -> None:
        """Send the next record. Raises UserError for one that can't be written, with its place."""
        self._limits.check_record(record)
        self._produce_when_room(deliveries.sent_count, record, deliveries)
        deliveries.record_sent(record)

    def _produce_when_room(self, index: int, record: EncodedRecord, deliveries: Deliveries) -> None:
        """Hand a record to the producer, as soon as its queue has room.

        Raises UserError for a record that it refuses, naming its place in the input.
        """
        fields = {**self._fields, "on_delivery": deliveries.create_delivery_callback(index)}
        if record.timestamp_ms is not None:
            fields["timestamp"] = record.timestamp_ms
        produce = self._producer.produce
        try:
            try:
                produce(self._topic, value=record.value, key=record.key, **fields)
            except BufferError:
                self._producer.wait_for_queue_room()
                produce(self._topic, value=record.value, key=record.key, **fields)
        except Exception as error:
            refusal = translate_produce_error(error, "produce", self._topic)
            if refusal is None:
                raise
            raise ConfigError(f"{record.place}: {refusal}") from error


def _explain_failure(error: BaseException) -> str:
    """Return the reason for which a transaction was not committed."""
    if isinstance(error, TaskMigrated):
        return f"the transaction took longer than brokers let it ({error})"
    return str(error) or "interrupted"
