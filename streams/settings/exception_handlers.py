"""Choose what happens to a record that fails: fail, skip it, or write it to a dead-letter topic.

Kafka Streams' three handlers (KIP-161, KIP-210, KIP-1033) with its dead letters (KIP-1034). Each is
`"fail"`, `"skip"`, `dead_letter("topic")`, or a function of an `ErrorContext` that returns one of
these. In a file of settings a dead letter is `"dead_letter:topic"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from streams.common.function_signatures import check_setting_function
from streams.common.message_headers import Header
from streams.common.names import explain_illegal_name
from streams.errors import ConfigError


class Stage(StrEnum):
    """Names the stages of processing at which a record can fail."""

    DESERIALIZATION = "deserialization"
    """The source's serdes can't read it."""
    PROCESSING = "processing"
    """A function or a processor of the user raised."""
    PRODUCTION = "production"
    """A sink's serdes can't write it, or the producer refuses it."""


def describe_handler(stage: Stage) -> str:
    """Return a hint for messages that names the handler of records that fail at a stage."""
    return f"{stage}_handler= decides about such records (docs/errors.md)"


class DeadLetter:
    """Represents a handler's response: write the record as it was read to `topic`, and go on.

    The dead letter's headers say what was wrong.
    """

    __slots__ = ("topic",)

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeadLetter) and other.topic == self.topic

    def __hash__(self) -> int:
        return hash(self.topic)

    def __repr__(self) -> str:
        return f"dead_letter({self.topic!r})"


def dead_letter(topic: str) -> DeadLetter:
    """Return the response that writes a record that fails to `topic`, which must exist.

    Raises ValueError if `topic` is no legal name of a topic.
    """
    if (fault := explain_illegal_name(topic)) is not None:
        raise ValueError(f"a dead-letter topic is a name, not {topic!r}: {fault}")
    return DeadLetter(topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext:
    """Describes a failure to a handler: the record as it was read, the step and the error.

    The record as it was read is in `topic`, `partition`, `offset`, `timestamp_ms`, `headers`,
    `source_key` and `source_value` (bytes). Where none was being processed (a punctuation, what a
    commit brings) `topic` is None, `partition` and `offset` are -1, and the bytes are None.
    """

    stage: Stage
    error: Exception
    step: str
    task_id: str
    topic: str | None
    partition: int
    offset: int
    timestamp_ms: int
    headers: tuple[Header, ...]
    source_key: bytes | None
    source_value: bytes | None
    key: Any = None
    """The key as the step was handed it; None where it could not be read."""
    value: Any = None
    target: str | None = None
    """In production: the topic that the record was to be written to."""


HandlerResponse = Literal["fail", "skip"] | DeadLetter
ExceptionHandler = HandlerResponse | Callable[[ErrorContext], HandlerResponse]

_DEAD_LETTER_PREFIX = "dead_letter:"


def parse_handler(value: Any) -> ExceptionHandler:
    """Parse a handler from a setting's value.

    Raises ValueError if it is neither a response, nor its text, nor a function of an ErrorContext.
    """
    match value:
        case "fail" | "skip" | DeadLetter():
            return value
        case str() if value.startswith(_DEAD_LETTER_PREFIX):
            return dead_letter(value.removeprefix(_DEAD_LETTER_PREFIX).strip())
        case _ if callable(value):
            check_setting_function(value, "context")
            return value  # type: ignore[no-any-return]
    raise ValueError(
        f"{value!r} is neither 'fail' nor 'skip' nor 'dead_letter:<topic>' "
        "(in Python also dead_letter('topic') or a function of an ErrorContext)"
    )


class ExceptionHandlers(NamedTuple):
    """Holds the exception handlers of an application, one for each stage."""

    deserialization: ExceptionHandler = "fail"
    processing: ExceptionHandler = "fail"
    production: ExceptionHandler = "fail"

    def handler_of(self, stage: Stage) -> ExceptionHandler:
        """Return the handler of a stage."""
        match stage:
            case Stage.DESERIALIZATION:
                return self.deserialization
            case Stage.PROCESSING:
                return self.processing
            case Stage.PRODUCTION:
                return self.production

    def dead_letter_topics(self) -> Iterator[str]:
        """Yield the topics of those handlers that are a DeadLetter and no function."""
        for handler in self:
            if isinstance(handler, DeadLetter):
                yield handler.topic


def check_dead_letter_topics(
    handlers: ExceptionHandlers, reads_topic: Callable[[str], bool]
) -> None:
    """Raise ConfigError if a dead letter is to go to a topic that the application reads itself.

    `reads_topic` is true of its inputs, the topics of global tables, and its internal topics.
    """
    for stage in Stage:
        handler = handlers.handler_of(stage)
        if isinstance(handler, DeadLetter) and reads_topic(handler.topic):
            raise ConfigError(f"{stage}_handler={handler!r}: {explain_endless_letter()}")


def explain_endless_letter() -> str:
    """Return why dead letters can't go to a topic that the application reads itself."""
    return (
        "the application reads this topic itself, so a record that fails would come back and fail "
        "again without an end. Give dead letters a topic of their own, and read it with another "
        "application (docs/errors.md, after the fact)"
    )
