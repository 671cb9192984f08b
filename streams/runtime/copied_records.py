"""Convert messages of a global table's topic to records as its replica stores them."""

from __future__ import annotations

import logging
from typing import Any

from state.replica import CopiedRecord
from streams.errors import StreamsError
from streams.graph.nodes import GlobalTableSpec
from streams.settings.exception_handlers import (
    DeadLetter,
    ErrorContext,
    ExceptionHandler,
    Stage,
    describe_handler,
)

log = logging.getLogger("streams.runtime.global_tables")


def to_copied_record(
    table: GlobalTableSpec, message: Any, handler: ExceptionHandler = "fail"
) -> CopiedRecord | None:
    """Return a record as a replica stores it, or None for one to skip.

    Skipped are records without a key, and those that the serdes refuse where the handler lets them
    pass. A dead letter is not written: nothing here is in a transaction (KIP-1034 has none either).

    Raises: StreamsError for a refused record that the handler does not let pass.
    """
    key, value = message.key(), message.value()
    if key is None:
        return None
    try:
        table.store.key.deserialize(key)
        if value is not None:
            table.store.value.deserialize(value)
    except Exception as error:
        origin = f"{message.topic()}[{message.partition()}]@{message.offset()}"
        response = (
            handler(_create_error_context(table, message, error)) if callable(handler) else handler
        )
        if response == "skip" or isinstance(response, DeadLetter):
            log.warning("global table %r: %s is skipped: %r", table.store.name, origin, error)
            return None
        raise StreamsError(
            f"step {table.name!r} can't read {origin} with serdes key={table.store.key.name} "
            f"value={table.store.value.name}: {error}; key {key!r:.200}, value {value!r:.200}"
            f"{'; ' + describe_handler(Stage.DESERIALIZATION) if handler == 'fail' else ''}"
        ) from error
    return message.partition(), message.offset(), key, value, message.timestamp()[1]


def _create_error_context(table: GlobalTableSpec, message: Any, error: Exception) -> ErrorContext:
    """Return the context of a deserialization error, for the handler."""
    return ErrorContext(
        stage=Stage.DESERIALIZATION,
        error=error,
        step=table.name,
        task_id="global",
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=message.timestamp()[1],
        headers=tuple(message.headers() or ()),
        source_key=message.key(),
        source_value=message.value(),
    )
