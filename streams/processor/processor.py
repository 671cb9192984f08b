"""Define the base class of steps that a user writes, with stores, schedules and any output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from typing_extensions import TypeVar

from streams.graph.materialized import Store
from streams.processor.context import ProcessorContext
from streams.processor.record import Record

K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
K2 = TypeVar("K2", default=Any)
V2 = TypeVar("V2", default=Any)


class Processor(Generic[K, V, K2, V2]):
    """Processes records of K and V and forwards records of K2 and V2: the base class for users.

    Each task has an instance of its own; it is used by one thread at a time. `init` is called when
    the task's stores are restored, `close` when the task is closed or rolls back. After a rollback
    a new instance takes over: what belongs to a record must be kept in stores, not in attributes.
    """

    stores: ClassVar[Sequence[str | Store]] = ()
    """The stores that it uses: names of the application's stores, or declarations of its own."""

    context: ProcessorContext[K2, V2]
    """Set before `init`."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says who sets the context, if it is asked for too early."""
            hint = (
                " yet: it is set before init, and of a processor within another the outer one sets "
                "it: inner.context = context; inner.init(context)"
                if name == "context"
                else ""
            )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def init(self, context: ProcessorContext[K2, V2]) -> None:
        """Get the stores and schedule punctuations."""

    def process(self, record: Record[K, V]) -> None:
        """Process one record; `self.context.forward` hands on any number of records."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the resources of `init`, but not stores and schedules."""
