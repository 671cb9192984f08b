"""Hand each record to a user's processor, which forwards any records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol

from state.shown_values import read_repr_safely
from streams.errors import StreamsError
from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.operators.unfinished_calls import refuse_unfinished_call
from streams.processor.context import FixedKeyContext, ProcessorContext
from streams.processor.processor import Processor
from streams.processor.record import Record

log = logging.getLogger(__name__)

ProcessorFactory = Callable[[], Processor[Any, Any, Any, Any]]


def process_records(create_processor: ProcessorFactory, store_names: Collection[str]) -> Operator:
    """Return the operator that hands each record to a processor, of which each task has its own."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, failed = binding.context, binding.skip_record_or_raise
        processor = create_processor()
        register_init_and_close(processor, ProcessorContext(binding, store_names), binding)
        process = processor.process

        def hand_to_processor(key: Any, value: Any, timestamp_ms: int) -> None:
            context.record_timestamp_ms = timestamp_ms
            try:
                result: Any = process(
                    Record.from_message(key, value, timestamp_ms, context.message)
                )
                if result is not None:
                    refuse_unfinished_call(result)
            except Exception as error:
                failed(error, key, value)

        return hand_to_processor

    return bind_operator


def process_with_fixed_keys(
    create_processor: ProcessorFactory, store_names: Collection[str]
) -> Operator:
    """Return the operator that hands each record to a processor that must not change its key."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, failed = binding.context, binding.skip_record_or_raise
        processor = create_processor()
        fixed_key_context: FixedKeyContext[Any, Any] = FixedKeyContext(binding, store_names)
        register_init_and_close(processor, fixed_key_context, binding)
        process = processor.process

        def hand_to_processor(key: Any, value: Any, timestamp_ms: int) -> None:
            context.record_timestamp_ms = timestamp_ms
            fixed_key_context.key = key
            try:
                result: Any = process(
                    Record.from_message(key, value, timestamp_ms, context.message)
                )
                if result is not None:
                    refuse_unfinished_call(result)
            except Exception as error:
                failed(error, key, value)

        return hand_to_processor

    return bind_operator


class UserProcessor(Protocol):
    """Declares what a task calls of a user's Processor or ValueTransformer."""

    context: Any

    def init(self, context: Any) -> None: ...
    def close(self) -> None: ...


def register_init_and_close(
    processor: UserProcessor, processor_context: ProcessorContext[Any, Any], binding: Binding
) -> None:
    """Set a processor's context, and register its `init` and `close` to run with the task."""
    processor.context = processor_context

    def start_processor() -> None:
        try:
            processor.init(processor_context)
        except Exception as error:
            raise StreamsError(
                f"step {binding.step!r} can't be initialised: {read_repr_safely(error)}"
            ) from error
        binding.context.close_callbacks.append(
            close_processor
        )  # only a processor that was initialised is closed

    def close_processor() -> None:
        try:
            processor.close()
        except Exception:  # its resources are its own; the task must close whatever it does
            log.exception(
                "step %r of task %s failed to close", binding.step, binding.context.task_name
            )

    binding.context.start_callbacks.append(start_processor)
