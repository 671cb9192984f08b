"""Process records in the steps of a sub-topology, bound to one producer.

Steps are bound when a task starts to process, and dropped when it is rolled back or closed, with
all that they hold: results, punctuations, and what user code kept in its processors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from state.errors import EarlierWriteRefused, StoreCorrupted, StoreSerdeError
from state.transaction import raise_no_record
from streams.errors import ValueRefused
from streams.operators.uncommitted_results import estimate_messages_bytes
from streams.runtime.tasks.context import COMMIT_ORIGIN, PUNCTUATION_ORIGIN, TaskContext
from streams.runtime.tasks.early_serialization import EarlySerialization
from streams.runtime.tasks.partition_group import RecordReceiver, RecordRun
from streams.runtime.tasks.punctuation import PunctuationCount, PunctuationQueue
from streams.runtime.tasks.task_stores import TaskStores
from streams.topology.build import Subtopology
from streams.topology.compile import compile_subtopology


class BoundSteps:
    """Processes the records of one task in steps that are bound to `context` and `stores`.

    Kafka Streams' counterpart is ProcessorTopology.
    """

    def __init__(
        self,
        subtopology: Subtopology,
        context: TaskContext,
        stores: TaskStores,
        early_serialization: EarlySerialization,
    ) -> None:
        self.context = context
        self._subtopology = subtopology
        self._stores = stores
        self._early_serialization = early_serialization
        self._previews: list[tuple[RecordReceiver, Callable[[set[bytes]], None]]] = []
        """The receivers of topics whose values a step previews, each with the step's function."""

    def bind_sources(self) -> dict[str, RecordReceiver]:
        """Bind the steps, and return the function of each source that takes a topic's records."""
        with self._translate_store_errors():  # processors may read their stores in `init`
            topics = compile_subtopology(self._subtopology, self.context)
        previews = self.context.value_previews
        self._previews = [(topics[topic], previews[topic]) for topic in topics.keys() & previews]
        return topics

    def process_runs(self, runs: list[RecordRun]) -> PunctuationCount:
        """Process runs of records and return how many punctuations were called."""
        context = self.context
        for reader, preview_values in self._previews:
            preview_values(_collect_values(runs, reader))
        with self._translate_store_errors():
            if context.punctuations.by_stream_time:
                return self._process_with_punctuations(runs)
            early = self._early_serialization if self._early_serialization.is_on else None
            for receive, messages in runs:
                for message in messages:
                    context.message = message
                    receive(message)
                    if early is not None:
                        early.serialize_mutated_values(
                            context, self._subtopology.find_first_step_using
                        )
        return 0

    def _process_with_punctuations(self, runs: list[RecordRun]) -> PunctuationCount:
        """Process runs, with each punctuation called right after the record that makes it due."""
        context = self.context
        early = self._early_serialization if self._early_serialization.is_on else None
        stream = context.punctuations.by_stream_time
        called = 0
        for receive, messages in runs:
            for message in messages:
                context.message = message
                receive(message)
                if early is not None:
                    early.serialize_mutated_values(context, self._subtopology.find_first_step_using)
                if stream.follow_clock(context.stream_time_ms):
                    called += self._call_due(stream, context.stream_time_ms)
        return called

    def is_punctuation_due(self, now_ms: Callable[[], int]) -> bool:
        """Return whether punctuations are due, by stream time or by the wall clock."""
        context = self.context
        stream, wall = context.punctuations.by_stream_time, context.punctuations.by_wall_clock
        if stream and stream.follow_clock(context.stream_time_ms):
            return True
        return bool(wall) and wall.follow_clock(now_ms())

    def call_due_punctuations(self, now_ms: int) -> PunctuationCount:
        """Call the punctuations that are due by either clock and return how many were called."""
        context = self.context
        called = self._call_due(context.punctuations.by_stream_time, context.stream_time_ms)
        return called + self._call_due(context.punctuations.by_wall_clock, now_ms)

    def _call_due(self, punctuation_queue: PunctuationQueue, now_ms: int) -> PunctuationCount:
        """Call the punctuations of one clock that are due at `now_ms` and return their number."""
        context = self.context
        context.message = None
        context.origin_without_record = PUNCTUATION_ORIGIN
        with self._translate_store_errors():
            called = punctuation_queue.call_due(now_ms)
            self._serialize_mutated_values()
            return called

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how many bytes of memory uncommitted writes and held results take."""
        return self._stores.uncommitted_bytes + sum(
            map(estimate_messages_bytes, self.context.uncommitted_results.values())
        )

    def emit_pending_results(self) -> None:
        """Emit the results that steps have held for the commit, upstream steps first.

        Raises: the fatal error that user code may have caught since the last commit.
        """
        context = self.context
        context.message = None
        context.origin_without_record = COMMIT_ORIGIN
        with self._translate_store_errors():
            if context.fatal_error is not None:
                raise context.fatal_error
            for flush in reversed(context.commit_callbacks):
                flush()
            self._serialize_mutated_values()

    def serialize_changes(self) -> None:
        """Serialize the new value of each changed key of every store.

        Raises: ValueRefused for a value that a store's serde refuses; which record wrote it is
        found when the transaction is repeated.
        """
        with self._translate_store_errors():  # expired values are looked up on disk
            try:
                self._stores.serialize_changes()
            except StoreSerdeError as error:
                if self._early_serialization.is_on:
                    raise
                raise ValueRefused(self.context.task_name, str(error)) from error

    def unbind_steps(self) -> None:
        """Call the steps' close callbacks, and release the references that the steps hold."""
        self._previews.clear()
        context = self.context
        for close in context.close_callbacks:
            close()
        # All refer back to the context: without these cycles it is freed at once, and the
        # producer with it.
        context.close_callbacks.clear()
        context.commit_callbacks.clear()
        for store in self._stores.all_stores().values():
            store.clock = raise_no_record

    def _serialize_mutated_values(self) -> None:
        """Serialize the objects that user code may have changed, if values serialize early."""
        if self._early_serialization.is_on:
            self._early_serialization.serialize_mutated_values(
                self.context, self._subtopology.find_first_step_using
            )

    @contextmanager
    def _translate_store_errors(self) -> Iterator[None]:
        """Translate StoreCorrupted, raised in this context manager's block, into TaskCorrupted.

        A corrupt copy of a global table raises StreamsError. A value that a serde refused late
        starts the search for the record that wrote it.
        """
        try:
            yield
        except StoreCorrupted as error:
            raise self._stores.translate_damage(error) from error
        except EarlierWriteRefused as error:
            self.context.start_refused_value_search(error)
            raise


def _collect_values(runs: list[RecordRun], receiver: RecordReceiver) -> set[bytes]:
    """Return the values of all records that `receiver` takes, as bytes."""
    values = {message.value() for receive, run in runs if receive is receiver for message in run}
    values.discard(None)
    return values
