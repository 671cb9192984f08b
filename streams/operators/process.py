"""Hand each record to a user's processor, which forwards any records."""

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
    """Return the operator that hands each record to a processor of the task's own."""

    def bind_operator(binding: Binding) -> Emit:
        context, failed = binding.context, binding.failed
        processor = factory()
        attach(processor, ProcessorContext(binding, stores), binding)
        process = processor.process

        def hand_to_processor(key: Any, value: Any, timestamp_ms: int) -> None:
            context.record_ms = timestamp_ms
            try:
                process(Record.of(key, value, timestamp_ms, context.message))
            except Exception as error:
                failed(error, key, value)

        return hand_to_processor

    return bind_operator


def process_values(factory: Factory, stores: Collection[str]) -> Operator:
    """Return the operator that hands each record to a processor that must not change its key."""

    def bind_operator(binding: Binding) -> Emit:
        context, failed = binding.context, binding.failed
        processor = factory()
        fixed_key_context: FixedKeyContext[Any, Any] = FixedKeyContext(binding, stores)
        attach(processor, fixed_key_context, binding)
        process = processor.process

        def hand_to_processor(key: Any, value: Any, timestamp_ms: int) -> None:
            context.record_ms = timestamp_ms
            fixed_key_context.key = key
            try:
                process(Record.of(key, value, timestamp_ms, context.message))
            except Exception as error:
                failed(error, key, value)

        return hand_to_processor

    return bind_operator


class Attached(Protocol):
    """Declares what a task calls of a user's Processor or ValueTransformer."""

    context: Any

    def init(self, context: Any) -> None: ...
    def close(self) -> None: ...


def attach(processor: Attached, own: ProcessorContext[Any, Any], at: Binding) -> None:
    """Have the task call a processor's `init` when it starts, and `close` when it closes."""
    processor.context = own

    def start_processor() -> None:
        try:
            processor.init(own)
        except Exception as error:
            raise StreamsError(f"step {at.step!r} can't be initialised: {error!r}") from error
        at.context.closers.append(
            close_processor
        )  # only a processor that was initialised is closed

    def close_processor() -> None:
        try:
            processor.close()
        except Exception:  # its resources are its own; the task must close whatever it does
            log.exception("step %r of task %s failed to close", at.step, at.context.task_name)

    at.context.starters.append(start_processor)
