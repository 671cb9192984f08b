"""Run a step of the DSL as a processor, so that the application's wrapper can wrap it (KIP-1112).

In Kafka Streams each step of the DSL is a processor. Here it is a function, unless an application
has a `processor_wrapper`: then the step's function is bound as always, and a `DslStepProcessor`
calls it. What the function forwards goes through the context that the processor was initialised
with, which the wrapper may have replaced. Updates of tables are records whose value is a Change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from state.shown_values import quote_value
from streams.common.changes import Change
from streams.errors import StreamsError
from streams.graph.nodes import Binding, Operator
from streams.operators.process import register_init_and_close
from streams.operators.unfinished_calls import refuse_unfinished_call
from streams.processor.context import FixedKeyContext
from streams.processor.processor import Processor
from streams.processor.record import MessageWithHeaders, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedStepShape:
    """Describes how records come to a wrapped step and leave it."""

    takes_updates: bool
    """True if the step is handed updates of a table."""
    emits_updates: bool
    """True if the step forwards updates of a table."""
    keeps_keys: bool
    """True if a record's key must stay as it is, as in Kafka Streams' FixedKeyProcessor."""
    stores: Collection[str]
    """The names of the stores that its processor may ask for."""


class DslStepContext(FixedKeyContext[Any, Any]):
    """Gives the processor of a step of the DSL its task, and the step's bound function."""

    refusal_of_other_keys = "the step keeps keys as they are"

    def __init__(self, binding: Binding, shape: WrappedStepShape) -> None:
        super().__init__(
            _unpack_changes_for_downstream(binding) if shape.emits_updates else binding,
            shape.stores,
        )
        self.shape = shape
        self.forwarding_context: Any = self
        """The context that the step's processor was initialised with: this one, or a wrapper's."""
        self.step_function: Callable[..., None]

    @property
    def dsl_step(self) -> DslStepContext:
        """Return this context, also where a wrapper has put one of its own around it."""
        return self

    def forward_result(self, key: Any, value: Any, timestamp_ms: int, to: str | None) -> None:
        """Forward a record of the step's function through the processor's context."""
        record = Record.from_message(key, value, timestamp_ms, self._task.message)
        if to is None:
            self.forwarding_context.forward(record)
        else:
            self.forwarding_context.forward(record, to)

    def call_step(self, record: Record[Any, Any]) -> None:
        """Call the step's function with a record, whose headers go with what it forwards."""
        if not isinstance(record, Record):
            raise TypeError(f"process takes a Record, not {quote_value(record)}")
        task = self._task
        message, time_ms = task.message, task.record_timestamp_ms
        task.record_timestamp_ms = record.timestamp_ms
        try:
            if record.own_headers is not None or record.source_message is not message:
                task.message = MessageWithHeaders(message, record.headers)
            if self.shape.takes_updates:
                change = _require_change(record, self._at.step)
                self.step_function(record.key, *change[:2], record.timestamp_ms, change.latest)
            else:
                self.step_function(record.key, record.value, record.timestamp_ms)
        finally:
            task.message, task.record_timestamp_ms = message, time_ms


class DslStepProcessor(Processor[Any, Any, Any, Any]):
    """Runs a step of the DSL, for the processor that an application puts around it."""

    _step: DslStepContext | None = None

    def init(self, context: Any) -> None:
        """Take the context that results are forwarded through; it leads to the step's function."""
        step: DslStepContext = context.dsl_step
        step.forwarding_context = context
        self._step = step

    def process(self, record: Record[Any, Any]) -> None:
        if self._step is None:
            raise StreamsError(
                "the processor of a step of the DSL was not initialised: let the init of the one "
                "around it call its init(context)"
            )
        self._step.call_step(record)


def run_step_as_processor(
    operator: Operator, create_processor: Callable[[], Any], shape: WrappedStepShape
) -> Operator:
    """Return the operator that runs a step of the DSL within the processor of a wrapper."""

    def bind_operator(binding: Binding) -> Callable[..., None]:
        task, failed = binding.context, binding.skip_record_or_raise
        context = DslStepContext(binding, shape)
        context.step_function = operator(_forward_through(context, binding))
        processor = create_processor()
        register_init_and_close(processor, context, binding)
        process = processor.process

        def hand_record(key: Any, value: Any, timestamp_ms: int) -> None:
            task.record_timestamp_ms = timestamp_ms
            if shape.keeps_keys:
                context.key = key
            try:
                result: Any = process(Record.from_message(key, value, timestamp_ms, task.message))
                if result is not None:
                    refuse_unfinished_call(result)
            except Exception as error:
                failed(error, key, value)

        def hand_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            hand_record(key, Change(new, old, latest), timestamp_ms)

        return hand_update if shape.takes_updates else hand_record

    return bind_operator


def _forward_through(context: DslStepContext, binding: Binding) -> Binding:
    """Return a binding whose step forwards through `context`."""
    forward = context.forward_result

    def create_forwarder(to: str | None) -> Callable[..., None]:
        def forward_record(key: Any, value: Any, timestamp_ms: int) -> None:
            forward(key, value, timestamp_ms, to)

        def forward_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            forward(key, Change(new, old, latest), timestamp_ms, to)

        return forward_update if context.shape.emits_updates else forward_record

    children: Mapping[str, Any] = {name: create_forwarder(name) for name in binding.children}
    return replace(binding, downstream=create_forwarder(None), children=children)


def _unpack_changes_for_downstream(binding: Binding) -> Binding:
    """Return a table step's binding whose outputs take records with a Change as value."""

    def accept_changes(forward_update: Callable[..., None]) -> Callable[..., None]:
        def forward_change(key: Any, change: Any, timestamp_ms: int) -> None:
            if not isinstance(change, Change):
                raise TypeError(
                    f"step {binding.step!r} is a table's, and forwards a Change as value, as "
                    f"record.value._replace(new=...) makes one, not {quote_value(change)}"
                )
            forward_update(key, *change[:2], timestamp_ms, change.latest)

        return forward_change

    children = {name: accept_changes(child) for name, child in binding.children.items()}
    return replace(binding, downstream=accept_changes(binding.downstream), children=children)


def _require_change(record: Record[Any, Any], step: str) -> Change[Any]:
    """Return the value of a record that a table step is handed. Raises TypeError for another."""
    if not isinstance(record.value, Change):
        raise TypeError(
            f"step {step!r} takes updates of a table, whose value is a Change, as "
            f"record.value._replace(new=...) makes one, not {quote_value(record.value)}"
        )
    return record.value
