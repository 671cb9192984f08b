"""Define the base class by which a user computes a table's values, with stores and schedules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Generic, NoReturn

from typing_extensions import TypeVar

from streams.errors import StreamsError
from streams.graph.materialized import Store
from streams.graph.nodes import Binding
from streams.processor.context import ProcessorContext
from streams.processor.record import Headers

K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
V2 = TypeVar("V2", default=Any)


class TransformerContext(ProcessorContext[Any, Any]):
    """Gives a transformer access to its task; a transformer can't forward records."""

    def __init__(self, binding: Binding, store_names: Collection[str]) -> None:
        super().__init__(binding, store_names)
        self.timestamp_ms = -1
        """The timestamp in ms of the value being transformed; -1 where there is none."""

    @property
    def headers(self) -> Headers:
        """Return the headers of the record that changed the row.

        There are none where the value is read from a table.
        """
        message = self._task.message
        return () if message is None else tuple(message.headers() or ())

    def forward(self, record: object, to: str | None = None) -> NoReturn:
        """Raise StreamsError: a transformer returns one value for each row."""
        raise StreamsError(
            f"step {self._at.step!r} can't forward: transform_values returns one value for each "
            "row; to forward use to_stream().process(...)"
        )


class ValueTransformer(Generic[K, V, V2]):
    """Computes a row's new value from its value: the base class for `Table.transform_values`.

    Each task has an instance of its own, and one more for each later step that reads the table's
    values, unless the result is materialized (`store=`): such a step has a value transformed anew,
    and then stores should only be read. An instance is used by one thread at a time; after a
    rollback a new one takes over, so what belongs to a row must be in stores, not in attributes.

    Source of the rules: Kafka Streams' ValueTransformerWithKey and KTableTransformValues.
    """

    stores: ClassVar[Sequence[str | Store]] = ()
    """The stores that it uses: names of the application's stores, or declarations of its own."""

    context: TransformerContext
    """Set before `init`."""

    def init(self, context: TransformerContext) -> None:
        """Get the stores and schedule punctuations."""

    def transform(self, key: K, value: V | None) -> V2 | None:
        """Return the row's new value, or None for none.

        `value` is None for a row that is deleted or is not there. A row's key can't be changed.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release the resources of `init`, but not stores and schedules."""
