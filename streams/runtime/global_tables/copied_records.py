"""Convert messages of a global table's topic to records as its replica stores them.

What the serdes refuse is for the deserialization handler. Nothing here is in a transaction: dead
letters go through a producer of their own, and brokers have them before the replica's position is
past their records. So each is written at least once, by each worker that copies its record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

from state.replica import CopiedRecord, TopicReplica
from state.shown_values import hide_values, quote_value, read_text_safely
from streams.common.counted import format_count
from streams.common.host import Event, Host
from streams.errors import BrokerUnavailable, OutcomeUnknown, SerdeError, StreamsError
from streams.graph.global_store_spec import GlobalStoreSpec, find_topic_serdes
from streams.graph.nodes import GlobalTableSpec
from streams.membership.broker_outage import IsOverdue, create_overdue_check
from streams.runtime.clients import translate_delivery_error
from streams.runtime.clients.interfaces import ProducerClient
from streams.runtime.counters import ThreadCounters
from streams.runtime.global_tables.global_state_update import DecodedRecord, GlobalStateUpdate
from streams.runtime.tasks.failures import FailureHandler
from streams.settings.exception_handlers import ExceptionHandlers, Stage

log = logging.getLogger("streams.runtime.global_tables.tables")

_RETRY_S = 0.2
_TASK_NAME = "global"


class RecordCopier:
    """Converts records of one worker's global tables, and writes dead letters of those that fail.

    `create_producer` creates a producer without transactions, before the first dead letter.
    `list_topics` returns the topics that exist, to check that of a dead letter. `timeout_ms` is how
    long brokers may take no dead letters. `read_topics`, which the application reads itself, take
    none. It is the context of the failure handler.
    """

    def __init__(
        self,
        handlers: ExceptionHandlers,
        *,
        create_producer: Callable[[], ProducerClient],
        list_topics: Callable[[], Collection[str]],
        host: Host,
        timeout_ms: int = 300_000,
        is_overdue: IsOverdue | None = None,
        counters: ThreadCounters | None = None,
        read_topics: Collection[str] = (),
    ) -> None:
        self.counters = counters or ThreadCounters()
        """Counts records that were dropped, and dead letters."""
        self._failures = FailureHandler(
            handlers,
            counters=self.counters,
            monotonic_s=host.monotonic_s,
            list_topics=list_topics,
            read_topics=read_topics,
        )
        self._create_producer = create_producer
        self._host = host
        self._timeout_s = timeout_ms / 1000
        self._is_overdue = is_overdue or create_overdue_check(host)
        self._producer: ProducerClient | None = None
        self._undelivered: list[Exception] = []
        self._updates: dict[str, GlobalStateUpdate] = {}
        """What runs the processors of global stores, by the names of their steps."""
        self._tables_without_key: set[str] = set()
        self.task_name = _TASK_NAME
        self.message: Any = None
        self.record_timestamp_ms = -1

    def convert_records(
        self, table: GlobalTableSpec, replica: TopicReplica, messages: Sequence[Any], stop: Event
    ) -> list[CopiedRecord] | None:
        """Convert records, without those to skip, when brokers have the dead letters of these.

        Those of a global store go through its processor, which reads what `replica` has.

        Returns None where `stop` is set before brokers have them. Records without a key are
        skipped, as in any table.

        Raises: StreamsError for a record that the handler does not let pass, BrokerUnavailable
        where brokers take no dead letters for the time-out.
        """
        began_at_s = self._host.monotonic_s()
        while True:
            try:
                if isinstance(table, GlobalStoreSpec):
                    copied = self._process_records(table, replica, messages)
                else:
                    converted = [self._convert_record(table, message) for message in messages]
                    copied = [record for record in converted if record is not None]
                self._flush_dead_letters()
                return copied
            except OutcomeUnknown as error:
                self.discard_producer()
                if self._is_overdue(began_at_s, self._timeout_s):
                    raise BrokerUnavailable(
                        f"dead letters of global table {table.store.name!r} could not be written "
                        f"for {self._timeout_s:g} s: {error}"
                    ) from error
                log.warning("dead letters of global table %r: %s", table.store.name, error)
            stop.wait(_RETRY_S)
            if stop.is_set():
                return None

    def describe_copied_and_skipped_counts(self, record_count: int) -> str:
        """Return how many of so many records the copies have, and how many were skipped."""
        skipped_count, letter_count = self.counters.dropped, self.counters.dead_letters
        told = format_count(max(record_count - skipped_count, 0), "record")
        if skipped_count:
            told += f", {skipped_count:,} skipped, {letter_count:,} of them as dead letters,"
        return told

    def discard_producer(self) -> None:
        """Discard the producer, if there is one; the next dead letter creates another."""
        producer, self._producer = self._producer, None
        self._undelivered = []
        if producer is not None:
            producer.discard()

    def _convert_record(self, table: GlobalTableSpec, message: Any) -> CopiedRecord | None:
        """Return a record as a replica stores it, or None for one to skip."""
        key, value = message.key(), message.value()
        if key is None:
            self._count_record_without_key(table, message)
            return None
        decoded = self._decode_record(table, message)
        if decoded is None:
            return None
        if decoded.key is None:  # as JSON's null is read
            self._count_record_without_key(table, message)
            return None
        if decoded.value is None:
            value = None
        try:
            # Look-ups ask by these bytes. The writer's may be others: JSON with spaces, Avro under
            # another id of its schema.
            key = table.store.key.serialize(decoded.key)
        except Exception as error:
            self._skip_unreadable_or_raise(table, message, error)
            return None
        return message.partition(), message.offset(), key, value, message.timestamp()[1]

    def _decode_record(self, table: GlobalTableSpec, message: Any) -> DecodedRecord | None:
        """Return a record with key and value decoded, or None for one to skip."""
        key, value = message.key(), message.value()
        key_serde, value_serde = find_topic_serdes(table)
        try:
            return DecodedRecord(
                None if key is None else key_serde.deserialize(key),
                None if value is None else value_serde.deserialize(value),
                message,
            )
        except Exception as error:
            self._skip_unreadable_or_raise(table, message, error)
            return None

    def _skip_unreadable_or_raise(
        self, table: GlobalTableSpec, message: Any, error: Exception
    ) -> None:
        """Let the deserialization handler decide about a record that the serdes refuse."""
        key, value = message.key(), message.value()
        key_serde, value_serde = find_topic_serdes(table)
        self.message = message
        refusal = SerdeError(
            f"step {table.name!r} can't read {self.describe_record_origin()} with serdes "
            f"key={key_serde.name} value={value_serde.name}: "
            f"{hide_values(read_text_safely(error), error, key, value)}; "
            f"key {quote_value(key)}, value {quote_value(value)}"
        )
        self._failures.skip_record_or_raise(self, Stage.DESERIALIZATION, table.name, error, refusal)

    def _process_records(
        self, table: GlobalStoreSpec, replica: TopicReplica, messages: Sequence[Any]
    ) -> list[CopiedRecord]:
        """Process records by a global store's processor, and return the records that it wrote."""
        update = self._updates.get(table.name)
        if update is None:
            update = self._updates[table.name] = GlobalStateUpdate(table, replica, self._host)
        decoded = (self._decode_record(table, message) for message in messages)

        def skip_record_or_raise(record: DecodedRecord, error: Exception) -> None:
            self.message = record.message
            self.record_timestamp_ms = record.message.timestamp()[1]
            self._failures.skip_record_or_raise(
                self, Stage.PROCESSING, table.name, error, key=record.key, value=record.value
            )

        return update.process_batch(
            (each for each in decoded if each is not None), skip_record_or_raise
        )

    def close_processors(self) -> None:
        """Close the processors of global stores; a later record is handed to another one."""
        for update in self._updates.values():
            update.close_processor()
        self._updates.clear()

    def _count_record_without_key(self, table: GlobalTableSpec, message: Any) -> None:
        """Count a record that can be in no table, and log the first one of each table."""
        self.counters.dropped += 1
        if table.name not in self._tables_without_key:
            self._tables_without_key.add(table.name)
            origin = f"{message.topic()}[{message.partition()}]@{message.offset()}"
            log.warning(
                "global table %r: %s is skipped, as it has no key; further ones are only counted",
                table.store.name,
                origin,
            )

    def _flush_dead_letters(self) -> None:
        """Wait until brokers have all dead letters.

        Raises: OutcomeUnknown if that is unknown, StreamsError for one that a broker refuses.
        """
        if self._producer is None:
            return
        try:
            self._producer.flush()
        except OutcomeUnknown:
            if not self._undelivered:
                raise
        if self._undelivered:
            permanent = [each for each in self._undelivered if isinstance(each, StreamsError)]
            raise (permanent or self._undelivered)[0]

    def poll_delivery_reports(self) -> None:
        """Flush dead letters, and serve the delivery reports of the producer, if there is one."""
        if self._producer is not None:
            self._producer.poll_delivery_reports()

    def produce(self, topic: str, *letter: Any) -> None:
        """Queue a dead letter of the record that is being converted, to be sent."""
        if self._producer is None:
            self._producer = self._create_producer()
        value, key, partition, _, _, timestamp_ms, headers = letter
        what = f"the dead letter of {self.describe_record_origin()} can't be written to {topic!r}"
        undelivered = self._undelivered

        def note_delivery(error: Any, _: Any) -> None:
            if error is not None:
                undelivered.append(translate_delivery_error(error, what, topic))

        record = (value, key, partition, note_delivery, None, timestamp_ms, headers)
        self._producer.produce(topic, *record)

    def wait_for_queue_room(self) -> None:
        """Wait until the producer's full queue takes records again."""
        assert self._producer is not None, "nothing was produced"
        self._producer.wait_for_queue_room()

    def describe_record_origin(self) -> str:
        """Return topic, partition and offset of the record that is being converted."""
        message = self.message
        return f"{message.topic()}[{message.partition()}]@{message.offset()}"
