"""Process: each record goes to a user's processor, which forwards what it likes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol

from streams.errors import StreamsError
from streams.processor.context import FixedKeyContext, ProcessorContext
from streams.processor.processor import Processor
from streams.processor.record import Record
from streams.topology.nodes import Binding, Emit, Operator

log = logging.getLogger(__name__)

Factory = Callable[[], Processor[Any, Any, Any, Any]]


def process_records(factory: Factory, stores: Collection[str]) -> Operator:
    def bind(at: Binding) -> Emit:
        context, failed = at.context, at.failed
        processor = factory()
        attach(processor, ProcessorContext(at, stores), at)
        process = processor.process

        def receive(key: Any, value: Any, timestamp_ms: int) -> None:
            context.record_ms = timestamp_ms
            try:
                process(Record.of(key, value, timestamp_ms, context.message))
            except Exception as error:
                failed(error, key, value)

        return receive

    return bind


def process_values(factory: Factory, stores: Collection[str]) -> Operator:
    def bind(at: Binding) -> Emit:
        context, failed = at.context, at.failed
        processor = factory()
        own: FixedKeyContext[Any, Any] = FixedKeyContext(at, stores)
        attach(processor, own, at)
        process = processor.process

        def receive(key: Any, value: Any, timestamp_ms: int) -> None:
            context.record_ms = timestamp_ms
            own.key = key
            try:
                process(Record.of(key, value, timestamp_ms, context.message))
            except Exception as error:
                failed(error, key, value)

        return receive

    return bind


class Attached(Protocol):
    """What a user wrote as a class: a Processor, a ValueTransformer."""

    context: Any

    def init(self, context: Any) -> None: ...
    def close(self) -> None: ...


def attach(processor: Attached, own: ProcessorContext[Any, Any], at: Binding) -> None:
    """Started when the task's steps are bound, and closed with them."""
    processor.context = own

    def start() -> None:
        try:
            processor.init(own)
        except Exception as error:
            raise StreamsError(f"step {at.step!r} can't be initialised: {error!r}") from error
        at.context.closers.append(close)  # only what was initialised is closed

    def close() -> None:
        try:
            processor.close()
        except Exception:  # what it holds is its own; the task must be let go whatever it does
            log.exception("step %r of task %s failed to close", at.step, at.context.task_name)

    at.context.starters.append(start)
