"""Handle records that fail as the application's handlers decide: fail, skip or dead letter.

A step calls `handle_failure` where a serde, a user's function or the producer raised, and only
there, so records that do not fail cost nothing more. It returns if the record is to be skipped, and
raises otherwise. A dead letter goes through the task's own producer, so it is in the transaction
that commits the record's offset: there is exactly one, however often processing is repeated.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Collection
from typing import Any

from state.errors import Refused, StateError
from streams.errors import (
    OutcomeUnknown,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    UserError,
    ValueRefused,
)
from streams.handling import DeadLetter, ErrorContext, Handlers, Response, Stage
from streams.processor.record import Rewritten
from streams.runtime.clients import recovery_from_produce
from streams.runtime.counters import Counters
from streams.topology.nodes import Context

log = logging.getLogger(__name__)

_LOG_EVERY_S = 10.0

NAMED = (UserError, TaskMigrated, TaskCorrupted, OutcomeUnknown, ValueRefused, MemoryError)
"""Errors that select the recovery themselves: no handler is called for them."""


class Failures:
    """Applies the application's exception handlers to the failures of one thread.

    `list_topics` returns the topics that exist, to check the topic of a dead letter. Kafka Streams'
    counterparts are DeserializationExceptionHandler, ProcessingExceptionHandler and
    ProductionExceptionHandler.
    """

    def __init__(
        self,
        handlers: Handlers,
        *,
        counters: Counters,
        monotonic_s: Callable[[], float],
        topics: Callable[[], Collection[str]],
    ) -> None:
        self._handlers = handlers
        self._counters = counters
        self._monotonic_s = monotonic_s
        self._topics = topics
        self._known = set(handlers.topics())
        self._quiet: dict[tuple[str, type], tuple[float, int]] = {}

    @property
    def skips_processing(self) -> bool:
        """Return whether processing may go on after a user's function has raised."""
        return self._handlers.processing != "fail"

    def failed(
        self,
        task: Context,
        stage: Stage,
        step: str,
        error: Exception,
        refusal: StreamsError | None = None,
        *,
        key: Any = None,
        value: Any = None,
        target: str | None = None,
    ) -> None:
        """Return if the handler lets the failed record be skipped, otherwise raise.

        Raised is `refusal` if it is given, or an error that names the step and the record. An error
        that selects its recovery itself, or that a broken store raised, is raised without asking
        the handler. A dead letter is written, and the dropped record is counted and logged.
        """
        if isinstance(error, NAMED) or _is_broken_store(error):
            raise error
        # With `refusal` it is a serde's failure, without it the producer's.
        if stage is Stage.PRODUCTION and refusal is None:
            action = f"step {step!r} can't write {task.origin()} to topic {target!r}"
            recovery = recovery_from_produce(error, action)
            if recovery is not None and not isinstance(recovery, StreamsError):
                raise recovery from error
            refusal = recovery
        handler = self._handlers.of(stage)
        if handler == "fail":
            raise refusal or _refusal(task, step, error) from error
        failure = _context(task, stage, step, error, key, value, target)
        response = self._ask(handler, failure) if callable(handler) else handler
        if response == "fail":
            raise refusal or _refusal(task, step, error) from error
        if isinstance(response, DeadLetter):
            self._write(response.topic, task, failure)
        self._counters.dropped += 1
        self._say(failure, response)

    def _ask(self, handler: Callable[[ErrorContext], Response], where: ErrorContext) -> Response:
        """Call a handler function and return its response; raise StreamsError if it is invalid."""
        try:
            response = handler(where)
        except Exception as error:
            raise StreamsError(
                f"the {where.stage} handler itself failed on {_origin(where)}: {error!r}"
            ) from error
        if response in ("fail", "skip") or isinstance(response, DeadLetter):
            return response
        raise StreamsError(
            f"the {where.stage} handler answered {response!r} on {_origin(where)}: it must return "
            "'fail', 'skip' or dead_letter('topic')"
        )

    def _write(self, topic: str, task: Context, where: ErrorContext) -> None:
        """Write the source record of a failure to a dead-letter topic, with error headers.

        Raises: StreamsError if the topic does not exist.
        """
        if topic not in self._known:
            if topic not in self._topics():
                raise StreamsError(
                    f"dead-letter topic {topic!r}, which the {where.stage} handler named for "
                    f"{_origin(where)}, does not exist: create it"
                )
            self._known.add(topic)
        # librdkafka takes 0 for no timestamp and writes the current time instead.
        produce, timestamp_ms = task.produce, max(where.timestamp_ms or 1, 0)
        record = (where.source_value, where.source_key, -1, None, None, timestamp_ms)
        headers = [*where.headers, *error_headers(where)]
        try:
            try:
                produce(topic, *record, headers)
            except BufferError:
                task.make_room()
                produce(topic, *record, headers)
        except Exception as error:
            what = f"the dead letter of {_origin(where)} can't be written to topic {topic!r}"
            raise recovery_from_produce(error, what) or error from error
        self._counters.dead_letters += 1

    def _say(self, where: ErrorContext, answer: Response) -> None:
        """Log a skipped record: the first of its kind at once, then a count at an interval."""
        kind = (where.step, type(where.error))
        now_s = self._monotonic_s()
        logged_at_s, unlogged_count = self._quiet.get(kind, (-_LOG_EVERY_S, 0))
        if now_s - logged_at_s < _LOG_EVERY_S:
            self._quiet[kind] = (logged_at_s, unlogged_count + 1)
            return
        self._quiet[kind] = (now_s, 0)
        log.warning(
            "step %r: %s of %s failed: %s: %r%s",
            where.step,
            where.stage,
            _origin(where),
            "skipped" if answer == "skip" else answer,
            where.error,
            f" ({unlogged_count} more like it since the last message)" if unlogged_count else "",
        )


FAILING = Failures(Handlers(), counters=Counters(), monotonic_s=float, topics=tuple)
"""A handler for which each failure ends the thread."""


def error_headers(where: ErrorContext) -> list[tuple[str, bytes | None]]:
    """Return the headers of a dead letter, with Kafka Streams' names (ExceptionHandlerUtils).

    The values are strings as bytes, None if unknown.
    """
    error = where.error
    kind = type(error)
    stack = "".join(traceback.format_exception(error))
    texts = {
        "exception": f"{kind.__module__}.{kind.__qualname__}",
        "message": str(error),
        "stacktrace": stack,
        "topic": where.topic,
        "partition": str(where.partition),
        "offset": str(where.offset),
    }
    return [
        (f"__streams.errors.{name}", None if text is None else text.encode(errors="replace"))
        for name, text in texts.items()
    ]


def _is_broken_store(error: Exception) -> bool:
    """Return whether a store itself has failed.

    A key or a value that a store's serde refuses is the record's fault, and no such failure.
    """
    return isinstance(error, StateError) and not isinstance(error, Refused)


def _refusal(task: Context, step: str, error: Exception) -> StreamsError:
    """Return the error that names the step, the record and the line at which processing failed."""
    reason = str(error)
    if not isinstance(error, StateError):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{error!r} in {frame.name}, {frame.filename}:{frame.lineno}"
    return StreamsError(f"step {step!r} can't process {task.origin()}: {reason}")


def _context(
    task: Context,
    stage: Stage,
    step: str,
    error: Exception,
    key: Any,
    value: Any,
    target: str | None,
) -> ErrorContext:
    """Return the context of an error, with the record as it was read, for a handler."""
    message = task.message
    while isinstance(message, Rewritten):
        message = message.message  # as it was read
    is_read = message is not None
    return ErrorContext(
        stage=stage,
        error=error,
        step=step,
        task_id=task.task_name,
        topic=message.topic() if is_read else None,
        partition=message.partition() if is_read else -1,
        offset=message.offset() if is_read else -1,
        timestamp_ms=message.timestamp()[1] if is_read else task.record_ms,
        headers=tuple(message.headers() or ()) if is_read else (),
        source_key=message.key() if is_read else None,
        source_value=message.value() if is_read else None,
        key=key,
        value=value,
        target=target,
    )


def _origin(where: ErrorContext) -> str:
    """Return the origin of the failed record, `topic[partition]@offset`, or of a task's result."""
    if where.topic is None:
        return f"a result of task {where.task_id}"
    return f"{where.topic}[{where.partition}]@{where.offset}"
