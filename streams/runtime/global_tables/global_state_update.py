"""Let a user's processor fill a global store, record by record (Kafka Streams' addGlobalStore).

The processor writes into a store over the copy's disk, whose writes are taken after each batch and
written with the position of the batch: so a crash repeats whole batches. Where the copy is made
anew, it gets all records of the topic again, as in Kafka Streams since 4.0 (KAFKA-7663).
Source: GlobalStateUpdateTask, GlobalProcessorContextImpl.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from state.key_value import KeyValueStore
from state.replica import CopiedRecord, TopicReplica
from state.shown_values import read_repr_safely
from streams.common.host import Host
from streams.errors import StreamsError
from streams.graph.global_store_spec import GlobalStoreSpec
from streams.operators.unfinished_calls import refuse_unfinished_call
from streams.processor.context import RecordMetadata
from streams.processor.record import Record

log = logging.getLogger(__name__)


class DecodedRecord(NamedTuple):
    """Holds a record of the topic, with the message that it came as."""

    key: Any
    value: Any
    message: Any


class GlobalProcessorContext:
    """Gives the processor of a global store access to that store, which it alone writes.

    It can neither forward nor schedule: the store belongs to no task.
    """

    def __init__(self, store: KeyValueStore[Any, Any], step: str, now_ms: Callable[[], int]):
        self._store = store
        self._step = step
        self._now_ms = now_ms
        self.task_id = "-1_-1"
        """The name of no task, as Kafka Streams has it here."""
        self.stream_time_ms = -1
        self.message: Any = None
        self.commit = self._ignore_commit_request

    def store(self, name: str) -> KeyValueStore[Any, Any]:
        """Return the global store. Raises StreamsError for any other name."""
        if name != self._store.name:
            raise StreamsError(
                f"step {self._step!r} fills the global store {self._store.name!r}, and has no "
                f"store {name!r}"
            )
        return self._store

    @property
    def system_time_ms(self) -> int:
        """Return the wall-clock time in ms."""
        return self._now_ms()

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Return topic, partition and offset of the record being processed, or None in `init`."""
        message = self.message
        if message is None:
            return None
        return RecordMetadata(message.topic(), message.partition(), message.offset())

    def __getattr__(self, name: str) -> Any:
        """Raise StreamsError for what needs a task, as `forward` and `schedule`."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise StreamsError(
            f"step {self._step!r} fills a global store: no step follows it, it belongs to no task, "
            f"and has no {name}()"
        )

    def _ignore_commit_request(self) -> None:
        """Do nothing on a commit request: writes are saved after each batch of records."""


class GlobalStateUpdate:
    """Runs the processor of one global store over batches of records.

    Its store reads what `replica` has, and holds what the processor writes.
    """

    def __init__(self, table: GlobalStoreSpec, replica: TopicReplica, host: Host) -> None:
        self._step = table.name
        self._time_ms = -1
        self._store = replica.open_view()
        self._store.clock = lambda: self._time_ms
        self._context = GlobalProcessorContext(self._store, table.name, host.now_ms)
        self._processor = table.create_processor()
        self._processor.context = self._context
        try:
            self._processor.init(self._context)
        except Exception as error:
            raise StreamsError(
                f"step {self._step!r} can't be initialised: {read_repr_safely(error)}"
            ) from error

    def process_batch(
        self,
        records: Iterable[DecodedRecord],
        on_failure: Callable[[DecodedRecord, Exception], None],
    ) -> list[CopiedRecord]:
        """Hand the records to the processor, and return the rows that it has written.

        What an earlier call has returned is on the disk. `on_failure` is called with a record for
        which the processor raised; it returns if the record is to be skipped.
        """
        self._store.rollback_transaction()
        for record in records:
            self._time_ms = record.message.timestamp()[1]
            self._context.stream_time_ms = max(self._context.stream_time_ms, self._time_ms)
            self._context.message = record.message
            try:
                result = self._processor.process(
                    Record.from_message(record.key, record.value, self._time_ms, record.message)
                )
                if result is not None:
                    refuse_unfinished_call(result)
            except Exception as error:
                on_failure(record, error)
        self._context.message = None
        return [(-1, -1, *entry) for entry in self._store.drain_writes()]

    def close_processor(self) -> None:
        """Close the processor, whatever it does."""
        try:
            self._processor.close()
        except Exception:  # its resources are its own; the worker must end whatever it does
            log.exception("step %r failed to close", self._step)
