"""Tell which records of a table's topic are its rows, where the topic restores the table's store,
and how the store has them.

Others may write a key as other bytes than the table's serde does: JSON with spaces, Avro under
another id of its schema. A store is asked by the bytes of its serde, which a processed row has. And
a serde may read None, as JSON's null is: without a value it is a deletion, without a key no row.

A record that the serdes can't read was for the `deserialization_handler` when it was processed. It
is no row only where that went on without it, and the record is at fault: a schema registry that is
away makes no record unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.shown_values import hide_values, quote_value, read_text_safely
from streams.common.error_causes import list_causes
from streams.errors import SerdeError, StreamsError
from streams.graph.nodes import SourceNode, StoreSpec
from streams.runtime.changelogs.logged_store import StoredRow
from streams.runtime.tasks.failures import FailureHandler
from streams.serdes.registry_client import RegistryUnavailable

_OF_THE_WAY = (OSError, RegistryUnavailable)
"""Errors of connections and files that a serde needs; those of connections are OSErrors."""


class RestoredRecord:
    """Represents a record that a restore reads, as the failure handler's context."""

    def __init__(self, task_name: str, message: Any) -> None:
        self.task_name = task_name
        self.message = message
        self.record_timestamp_ms = message.timestamp()[1]

    def describe_record_origin(self) -> str:
        """Return topic, partition and offset of the record."""
        return f"{self.message.topic()}[{self.message.partition()}]@{self.message.offset()}"


def create_row_encoder(
    spec: StoreSpec, sources: Mapping[str, SourceNode], task_name: str, failures: FailureHandler
) -> Callable[[Any], StoredRow | None]:
    """Return a function that returns key and value of a record as its table's store has them.

    It returns None for a record that is no row of the table, as one with a negative timestamp,
    which no task processes. `sources` are those of the task, by their topics. The function raises
    SerdeError for a record that the handler does not let pass, and StreamsError where its serdes
    could not be asked.
    """
    read_key, read_value = spec.key.deserialize, spec.value.deserialize
    write_key = spec.key.serialize
    source = sources.get(spec.source_topic or "")
    step = spec.name if source is None else source.name

    def encode_row(message: Any) -> StoredRow | None:
        key, value = message.key(), message.value()
        if message.timestamp()[1] < 0:
            return None
        try:
            read = read_key(key)
            stored_key = None if read is None else write_key(read)
            if value is not None and read_value(value) is None:
                value = None
        except Exception as error:  # a serde may be the user's; whatever it raises is looked at
            record = RestoredRecord(task_name, message)
            reason = hide_values(read_text_safely(error), error, key, value)
            refused = f"store {spec.name!r} can't be restored: {record.describe_record_origin()} "
            if any(isinstance(each, _OF_THE_WAY) for each in list_causes(error)):
                raise StreamsError(
                    f"{refused}could not be read, by no fault of the record: {reason}. No handler "
                    "is asked, since the row may be a good one. The task is restored when it is "
                    "started again"
                ) from error
            refusal = SerdeError(
                f"{refused}can't be read with serdes key={spec.key.name} value={spec.value.name}: "
                f"{reason}; key {quote_value(key)}, value {quote_value(value)}"
            )
            failures.leave_out_or_raise(record, step, error, refusal)
            return None
        return None if stored_key is None else (stored_key, value)

    return encode_row
