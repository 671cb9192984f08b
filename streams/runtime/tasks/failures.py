"""Handle records that fail as the application's handlers decide: fail, skip or dead letter.

A step calls `skip_record_or_raise` where a serde, a user's function or the producer raised, and
only there, so records that do not fail cost nothing more. It returns if the record is to be
skipped, and raises otherwise. A dead letter goes through the task's own producer, so it is in the
transaction that commits the record's offset: there is exactly one, however often processing is
repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol

from state.errors import StateError, StoreSerdeError
from state.shown_values import hide_values, read_repr_safely, read_text_safely
from streams.common.user_code import describe_error
from streams.errors import (
    AuthorizationError,
    SerdeError,
    StreamsError,
    ValueRefused,
    WriteRefused,
)
from streams.processor.record import MessageWithHeaders
from streams.runtime.clients import translate_produce_error
from streams.runtime.clients.errors import RecordRefused, is_client_error
from streams.runtime.counters import ThreadCounters
from streams.runtime.tasks.chosen_topics import ChosenTopics
from streams.runtime.tasks.dead_letters import create_dead_letter
from streams.runtime.tasks.recovery_errors import RECOVERY_ERRORS
from streams.runtime.tasks.repartition_counts import RepartitionCountCache
from streams.settings.exception_handlers import (
    DeadLetter,
    ErrorContext,
    ExceptionHandlers,
    HandlerResponse,
    Stage,
    describe_handler,
    explain_endless_letter,
)

log = logging.getLogger(__name__)

_LOG_EVERY_S = 10.0
_SYMPTOM_CLASSES: dict[Stage, type[Exception]] = {
    Stage.DESERIALIZATION: SerdeError,
    Stage.PROCESSING: ValueRefused,
    Stage.PRODUCTION: WriteRefused,
}
"""The errors whose pages say more of a skipped record, by the stage at which it failed."""


class FailedRecord(Protocol):
    """Gives a failure handler the record that failed."""

    task_name: str
    message: Any
    record_timestamp_ms: int

    def describe_record_origin(self) -> str: ...


class FailureContext(FailedRecord, Protocol):
    """Gives a failure handler the record that failed, and a producer for its dead letter.

    A part of InternalProcessorContext, which describes it.
    """

    @property
    def produce(self) -> Callable[..., None]: ...

    def wait_for_queue_room(self) -> None: ...


class FailureHandler:
    """Applies the application's exception handlers to the failures of one thread.

    `list_topics` returns the topics that exist, to check the topic of a dead letter.
    `chosen_topics` looks up the topics that functions choose; None takes all for existing ones.
    `repartition_counts` keeps the counts of repartition topics; None where these don't change.
    `read_topics`, which the application reads itself, take no dead letters.
    `logs_skipped`: whether skipped records are logged, which a replay of what the application has
    logged already does not do again. Kafka Streams' counterparts are
    DeserializationExceptionHandler, ProcessingExceptionHandler and ProductionExceptionHandler.
    """

    def __init__(
        self,
        handlers: ExceptionHandlers,
        *,
        counters: ThreadCounters,
        monotonic_s: Callable[[], float],
        list_topics: Callable[[], Collection[str]],
        chosen_topics: ChosenTopics | None = None,
        repartition_counts: RepartitionCountCache | None = None,
        read_topics: Collection[str] = (),
        logs_skipped: bool = True,
    ) -> None:
        self._chosen_topics = chosen_topics
        self._repartition_counts = repartition_counts
        self._handlers = handlers
        self._read_topics = read_topics
        self._logs_skipped = logs_skipped
        self._counters = counters
        self._monotonic_s = monotonic_s
        self._list_topics = list_topics
        self._known_topics = set(handlers.dead_letter_topics())
        self._log_times: dict[tuple[str, type], tuple[float, int]] = {}
        self._raised: Exception | None = None
        """The error that was raised last, which passes through the steps above its own."""

    @property
    def fails_production(self) -> bool:
        """Return whether any record that can't be written ends the thread."""
        return self._handlers.production == "fail"

    @property
    def skips_processing(self) -> bool:
        """Return whether processing may go on after a user's function has raised."""
        return self._handlers.processing != "fail"

    def require_chosen_topic_exists(
        self, topic: str, fetch_partition_count: Callable[[str], int]
    ) -> None:
        """Raise UnknownTopic if a topic that a function has chosen does not exist."""
        if self._chosen_topics is not None:
            self._chosen_topics.require_chosen_topic_exists(topic, fetch_partition_count)

    def get_read_partition_count(
        self, topic: str, fetch_partition_count: Callable[[str], int]
    ) -> int | None:
        """Return how many partitions of a repartition topic are read; None: all, always."""
        counts = self._repartition_counts
        return None if counts is None else counts.get_or_fetch_count(topic, fetch_partition_count)

    def refuse_topic_for_a_while(self, topic: str, reason: str) -> None:
        """Let `require_chosen_topic_exists` refuse a topic from now on, for a while."""
        if self._chosen_topics is not None:
            self._chosen_topics.refuse_topic_for_a_while(topic, reason)

    def skip_record_or_raise(
        self,
        context: FailureContext,
        stage: Stage,
        step: str,
        error: Exception,
        refusal: StreamsError | None = None,
        *,
        key: Any = None,
        value: Any = None,
        target_topic: str | None = None,
    ) -> None:
        """Return if the handler lets the failed record be skipped, otherwise raise.

        Raised is `refusal` if it is given, or an error that names the step and the record. An error
        that selects its recovery itself, or that a broken store raised, is raised without asking
        the handler. A dead letter is written, and the dropped record is counted and logged.
        """
        if self._is_recovery_error(error) or _is_store_failure(error):
            raise error
        # With `refusal` a serde has failed, or there is no such topic; without it the producer has.
        if stage is Stage.PRODUCTION and refusal is None:
            action = (
                f"step {step!r} can't write {context.describe_record_origin()} to topic "
                f"{target_topic!r}"
            )
            if isinstance(error, RecordRefused):
                recovery: Exception | None = StreamsError(f"{action}: {error.reason}")
            else:
                recovery = translate_produce_error(error, action, str(target_topic))
            if isinstance(recovery, AuthorizationError) or (
                recovery is not None and not isinstance(recovery, StreamsError)
            ):
                raise recovery from error
            refusal = recovery
        failure = _create_error_context(context, stage, step, error, key, value, target_topic)
        try:
            response = self._choose_response(context, failure)
            if response == "fail":
                fatal_error = refusal or _create_processing_error(context, step, error, key, value)
                raise self._add_handler_hint(fatal_error, stage) from error
            if isinstance(response, DeadLetter):
                self.write_dead_letter(response.topic, context, failure)
        except Exception as raised:
            self._raised = raised
            raise
        self._counters.dropped += 1
        if self._logs_skipped:
            self._log_skipped(context, failure, response)

    def leave_out_or_raise(
        self, context: FailedRecord, step: str, error: Exception, refusal: StreamsError
    ) -> None:
        """Return if the handler goes on without a record that a restore can't read, else raise.

        When the record was processed it was counted, logged, and became a dead letter if it had to.
        """
        if self._is_recovery_error(error) or _is_store_failure(error):
            raise error
        stage = Stage.DESERIALIZATION
        failure = _create_error_context(context, stage, step, error, None, None, None)
        if self._choose_response(context, failure) == "fail":
            raise self._add_handler_hint(refusal, stage) from error

    def _choose_response(self, context: FailedRecord, failure: ErrorContext) -> HandlerResponse:
        """Call the exception handler of a failure's stage, and return its response."""
        handler = self._handlers.handler_of(failure.stage)
        return self._call_handler(handler, context, failure) if callable(handler) else handler

    def _add_handler_hint(self, fatal_error: StreamsError, stage: Stage) -> StreamsError:
        """Add to the message of an error which handler could have decided otherwise.

        Only where the handler is "fail": who wrote a handler function knows of it.
        """
        if self._handlers.handler_of(stage) == "fail":
            fatal_error.args = (f"{fatal_error}; {describe_handler(stage)}",)
        return fatal_error

    def _is_recovery_error(self, error: Exception) -> bool:
        """Return whether no handler is to be called for an error.

        One of a user's function or serde may be a StreamsError too, as where it calls a serde: that
        is a failure of its record, unless a step below has raised it for good.
        """
        if type(error) in (StreamsError, SerdeError):
            return error is self._raised
        return isinstance(error, RECOVERY_ERRORS)

    def _call_handler(
        self,
        handler: Callable[[ErrorContext], HandlerResponse],
        context: FailedRecord,
        failure: ErrorContext,
    ) -> HandlerResponse:
        """Call a handler function and return its response; raise StreamsError if it is invalid."""
        origin = _describe_origin(context, failure)
        try:
            response = handler(failure)
        except Exception as error:
            raise StreamsError(
                f"the {failure.stage} handler itself failed on {origin}: "
                f"{_describe_failure(failure, describe_error(error), error)}"
            ) from error
        if response in ("fail", "skip") or isinstance(response, DeadLetter):
            return response
        raise StreamsError(
            f"the {failure.stage} handler answered {read_repr_safely(response)} on "
            f"{origin}: it must return 'fail', 'skip' or dead_letter('topic')"
        )

    def write_dead_letter(self, topic: str, context: FailureContext, failure: ErrorContext) -> None:
        """Write the source record of a failure to a dead-letter topic, with error headers.

        Raises: StreamsError if the topic does not exist, or is one that the application reads.
        """
        origin = _describe_origin(context, failure)
        if topic not in self._known_topics:
            if topic in self._read_topics:
                raise StreamsError(
                    f"the {failure.stage} handler answered dead_letter({topic!r}) for "
                    f"{origin}: {explain_endless_letter()}"
                )
            if topic not in self._list_topics():
                raise StreamsError(
                    f"dead-letter topic {topic!r}, which the {failure.stage} handler named for "
                    f"{origin}, does not exist, or no ACL lets this user "
                    "write it: create it, or add the ACL Write on it"
                )
            self._known_topics.add(topic)
        letter = create_dead_letter(failure)
        try:
            try:
                context.produce(topic, *letter)
            except BufferError:
                context.wait_for_queue_room()
                context.produce(topic, *letter)
        except Exception as error:
            what = f"the dead letter of {origin} can't be written to topic {topic!r}"
            raise translate_produce_error(error, what, topic) or error from error
        self._counters.dead_letters += 1

    def _log_skipped(
        self, context: FailureContext, failure: ErrorContext, response: HandlerResponse
    ) -> None:
        """Log a skipped record: the first of its kind at once, then a count at an interval."""
        kind = (failure.step, type(failure.error))
        now_s = self._monotonic_s()
        logged_at_s, unlogged_count = self._log_times.get(kind, (-_LOG_EVERY_S, 0))
        if now_s - logged_at_s < _LOG_EVERY_S:
            self._log_times[kind] = (logged_at_s, unlogged_count + 1)
            return
        self._log_times[kind] = (now_s, 0)
        log.warning(
            "step %r: %s of %s failed: %s: %s%s",
            failure.step,
            failure.stage,
            _describe_origin(context, failure),
            "skipped" if response == "skip" else response,
            _describe_failure(failure, read_repr_safely(failure.error)),
            f" ({unlogged_count} more like it since the last message)" if unlogged_count else "",
            extra={"error_class": _SYMPTOM_CLASSES[failure.stage]},
        )


FAIL_ON_ANY_ERROR = FailureHandler(
    ExceptionHandlers(), counters=ThreadCounters(), monotonic_s=float, list_topics=tuple
)
"""A handler for which each failure ends the thread."""


def _is_store_failure(error: Exception) -> bool:
    """Return whether an error is a failure of a store itself, not of a record.

    A key or a value that a store's serde refuses is the record's fault, and no such failure.
    """
    return isinstance(error, StateError) and not isinstance(error, StoreSerdeError)


def _create_processing_error(
    context: FailureContext, step: str, error: Exception, key: Any, value: Any
) -> StreamsError:
    """Return the error that names the step, the record and the line at which processing failed."""
    reason = read_text_safely(error)
    if not isinstance(error, StateError):
        message = context.message
        read = () if message is None else (message.key(), message.value())
        reason = hide_values(describe_error(error), error, key, value, *read)
    return StreamsError(f"step {step!r} can't process {context.describe_record_origin()}: {reason}")


def _create_error_context(
    context: FailedRecord,
    stage: Stage,
    step: str,
    error: Exception,
    key: Any,
    value: Any,
    target_topic: str | None,
) -> ErrorContext:
    """Return the context of an error, with the record as it was read, for a handler."""
    message = context.message
    while isinstance(message, MessageWithHeaders):
        message = message.message  # as it was read
    is_read = message is not None
    return ErrorContext(
        stage=stage,
        error=error,
        step=step,
        task_id=context.task_name,
        topic=message.topic() if is_read else None,
        partition=message.partition() if is_read else -1,
        offset=message.offset() if is_read else -1,
        timestamp_ms=message.timestamp()[1] if is_read else context.record_timestamp_ms,
        headers=tuple(message.headers() or ()) if is_read else (),
        source_key=message.key() if is_read else None,
        source_value=message.value() if is_read else None,
        key=key,
        value=value,
        target=target_topic,
    )


def _describe_failure(failure: ErrorContext, text: str, error: Exception | None = None) -> str:
    """Return an error's text, by default the failure's, without values that may not be shown."""
    if is_client_error(error or failure.error):
        return text  # a value that has words of Kafka's would take these out
    values = failure.key, failure.value, failure.source_key, failure.source_value
    return hide_values(text, error or failure.error, *values)


def _describe_origin(context: FailedRecord, failure: ErrorContext) -> str:
    """Return the failed record, `topic[partition]@offset`, or the callback that has no record.

    That is a punctuation, or the results of a commit, with the task: `a punctuation of task 0_1`.
    """
    origin = context.describe_record_origin()
    return origin if failure.topic is not None else f"{origin} of task {failure.task_id}"
