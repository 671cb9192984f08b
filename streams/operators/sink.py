"""Write each record to a topic, with its timestamp and headers (SinkNode)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import index
from typing import Any, TypeAlias

from state.errors import describe_serde_error
from state.shown_values import hide_values, quote_value
from streams.common.names import explain_illegal_name
from streams.common.partitioning import partition_for_key
from streams.errors import AuthorizationError, InvalidTopic, SerdeError, StreamsError, UnknownTopic
from streams.graph.internal_context import InternalProcessorContext
from streams.graph.nodes import ForwardRecord, Partitioner, SinkNode, TopicNameExtractor
from streams.processor.record import Record
from streams.settings.exception_handlers import Stage

Serialize = Callable[[Any], bytes]
SerializeKey: TypeAlias = Serialize
SerializeValue: TypeAlias = Serialize

_BY_KEY = -1
"""Lets librdkafka choose the partition: murmur2 of the key, as Kafka's own producer does."""
_FIRST_MS = 1
"""Written instead of 0 ms, which librdkafka takes for no timestamp and replaces by the present."""


def create_topic_writer(node: SinkNode, context: InternalProcessorContext) -> ForwardRecord:
    """Return a function that serialises each record once and hands it to the producer.

    What the serdes or the producer refuse at once (too large) is for the production handler, and so
    is what a function raises that chooses topic or partition, and a topic that it chose which has
    no legal name or does not exist. What the broker refuses later fails the transaction, and with
    it all of it.
    """
    topic = node.topic
    if isinstance(topic, str):
        return _create_fixed_writer(node, topic, context)
    if node.partitioner is None and node.key.inner is not None:
        node = replace(node, partitioner=_create_inner_key_partitioner(node))
    return _create_dynamic_writer(node, topic, context)


def _create_fixed_partition_chooser(
    node: SinkNode, topic: str, context: InternalProcessorContext
) -> Callable[[Any, Any, str], int | tuple[int, ...]] | None:
    """Return a function that chooses a record's partition of one topic, None if the key does it.

    All windows of a key go where the key itself would (Kafka Streams' WindowedStreamPartitioner).
    """
    if node.partitioner is not None:
        return _create_partition_chooser(node, context)
    if node.key.inner is None:
        return None
    serialize_inner = node.key.inner.for_topic(topic, "key").serialize
    count_of = _create_partition_counter(node, context)

    def partition_of(key: Any, _value: Any, _topic: str) -> int:
        if key is None:
            return _BY_KEY
        return partition_for_key(serialize_inner(key.key), count_of(topic))

    return partition_of


def _create_partition_counter(
    node: SinkNode, context: InternalProcessorContext
) -> Callable[[str], int]:
    """Return a function that counts the partitions of a topic among which records are divided."""
    if not node.internal:
        return context.partition_count

    def count_read_partitions(topic: str) -> int:
        return context.get_read_partition_count(topic) or context.partition_count(topic)

    return count_read_partitions


def _create_inner_key_partitioner(node: SinkNode) -> Partitioner:
    """Return a partitioner by the key in a window, for a sink whose topic a function chooses."""
    assert node.key.inner is not None
    serialize_inner = node.key.inner.serialize

    def partition_by_inner_key(key: Any, value: Any, partition_count: int) -> int | None:
        return None if key is None else partition_for_key(serialize_inner(key.key), partition_count)

    return partition_by_inner_key


def _create_fixed_writer(
    node: SinkNode, topic: str, context: InternalProcessorContext
) -> ForwardRecord:
    """Return a function that writes records to one topic, to which its serdes are bound.

    A partitioner chooses the partition, or else the key.
    """
    serialize_key = node.key.serialize
    serialize_value = node.value.serialize
    partition_of = _create_fixed_partition_chooser(node, topic, context)
    choose_read_partition = _create_read_partition_chooser(node, topic, context)
    produce = context.produce
    handle_refusal = _create_refusal_handler(node, context)
    produce_to_each = _create_multi_partition_writer(node, context, handle_refusal)
    measured = context.get_or_create_step_measurements(node.name)
    written = measured.get_or_add_topic_counts(topic)

    def send_record(key: Any, value: Any, timestamp_ms: int) -> None:
        partition: Any = _BY_KEY
        if partition_of is not None:
            try:
                partition = partition_of(key, value, topic)
            except Exception as error:
                handle_refusal(error, key, value, topic)
                return
        try:
            key_bytes = None if key is None else serialize_key(key)
            value_bytes = None if value is None else serialize_value(value)
        except Exception as error:
            handle_refusal(error, key, value, topic, unreadable=True)
            return
        if partition == _BY_KEY and choose_read_partition is not None:
            partition = choose_read_partition(key_bytes)
        time_ms = timestamp_ms or _FIRST_MS
        message = context.message
        headers = None if message is None else message.headers()
        if partition.__class__ is tuple:
            produce_to_each(topic, value_bytes, key_bytes, partition, time_ms, headers, key, value)
            return
        try:
            produce(topic, value_bytes, key_bytes, partition, None, None, time_ms, headers)
        except BufferError:
            try:
                context.wait_for_queue_room()
                produce(topic, value_bytes, key_bytes, partition, None, None, time_ms, headers)
            except Exception as error:
                handle_refusal(error, key, value, topic)
                return
        except Exception as error:
            handle_refusal(error, key, value, topic)
            return
        written.records += 1
        if written.is_due:
            measured.measure_written(written, key_bytes, value_bytes, headers, timestamp_ms)

    return send_record


def _create_read_partition_chooser(
    node: SinkNode, topic: str, context: InternalProcessorContext
) -> Callable[[bytes | None], int] | None:
    """Return a function that chooses a partition by a key's bytes; None if the producer does it.

    A repartition topic may be given more partitions than its readers have
    (`RepartitionCountCache`).
    """
    if not node.internal:
        return None

    def choose_read_partition(key: bytes | None) -> int:
        partitions = context.get_read_partition_count(topic)
        return _BY_KEY if partitions is None or key is None else partition_for_key(key, partitions)

    return choose_read_partition


def _create_dynamic_writer(
    node: SinkNode,
    choose_topic: TopicNameExtractor,
    context: InternalProcessorContext,
) -> ForwardRecord:
    """Return a function that writes each record to a topic of its own (KIP-303).

    A function of the record chooses it, and a partitioner, or else the key, the partition.
    """
    found_topics: set[str] = set()
    require_chosen_topic_exists = _create_topic_check(found_topics, context)
    partition_of = _create_partition_chooser(node, context)
    serializers = _create_serializer_lookup(node)
    produce = context.produce
    handle_refusal = _create_refusal_handler(node, context)
    produce_to_each = _create_multi_partition_writer(node, context, handle_refusal)
    by_key = node.partitioner is None
    measured = context.get_or_create_step_measurements(node.name)

    def send_record(key: Any, value: Any, timestamp_ms: int) -> None:
        topic: Any = None
        try:
            topic = choose_topic(Record.from_message(key, value, timestamp_ms, context.message))
            if not isinstance(topic, str) or topic not in found_topics:
                require_chosen_topic_exists(topic)
            partition = _BY_KEY if by_key else partition_of(key, value, topic)
        except Exception as error:
            handle_refusal(error, key, value, topic if isinstance(topic, str) else "(chosen)")
            return
        try:
            serialize_key, serialize_value = serializers(topic)
            key_bytes = None if key is None else serialize_key(key)
            value_bytes = None if value is None else serialize_value(value)
        except Exception as error:
            handle_refusal(error, key, value, topic, unreadable=True)
            return
        message = context.message
        headers = None if message is None else message.headers()
        time_ms = timestamp_ms or _FIRST_MS
        if partition.__class__ is tuple:
            produce_to_each(topic, value_bytes, key_bytes, partition, time_ms, headers, key, value)
            return
        arguments = (topic, value_bytes, key_bytes, partition, None, None, time_ms)
        try:
            try:
                produce(*arguments, headers)
            except BufferError:
                context.wait_for_queue_room()
                produce(*arguments, headers)
        except AuthorizationError as error:
            # The record has chosen a topic that may not be written: that is a matter of the record.
            found_topics.discard(topic)
            context.refuse_topic_for_a_while(topic, str(error))
            handle_refusal(UnknownTopic(str(error)), key, value, topic)
            return
        except Exception as error:
            handle_refusal(error, key, value, topic)
            return
        written = measured.get_or_add_topic_counts(topic)
        written.records += 1
        if written.is_due:
            measured.measure_written(written, key_bytes, value_bytes, headers, timestamp_ms)

    return send_record


def _create_topic_check(
    found_topics: set[str], context: InternalProcessorContext
) -> Callable[[Any], None]:
    """Return a function that adds a topic to `found_topics` if records can be written to it.

    It raises InvalidTopic for what can't be a topic's name, and UnknownTopic if there is no such
    topic: a producer would wait for it, and with it all that is written in one transaction.
    """

    def require_chosen_topic_exists(topic: Any) -> None:
        if (fault := explain_illegal_name(topic)) is not None:
            raise InvalidTopic(
                f"the function chose {topic!r:.300}, which is no topic's name: {fault}"
            )
        context.require_chosen_topic_exists(topic)
        found_topics.add(topic)

    return require_chosen_topic_exists


def _create_partition_chooser(
    node: SinkNode, context: InternalProcessorContext
) -> Callable[[Any, Any, str], int | tuple[int, ...]]:
    partitioner, count_of = node.partitioner, _create_partition_counter(node, context)

    def partition_of(key: Any, value: Any, topic: str) -> int | tuple[int, ...]:
        assert partitioner is not None
        count = count_of(topic)
        partition = partitioner(key, value, count)
        if partition is None:
            return _BY_KEY
        if isinstance(partition, Iterable) and not isinstance(partition, str | bytes):
            return tuple(
                sorted({_require_valid_partition(each, count, topic) for each in partition})
            )
        return _require_valid_partition(partition, count, topic)

    return partition_of


def _require_valid_partition(chosen: Any, count: int, topic: str) -> int:
    """Return the partition that a partitioner chose. Raises TypeError and ValueError."""
    try:
        partition = index(chosen)
    except TypeError:
        raise TypeError(
            f"the partitioner chose {chosen!r:.100} of the {count} partitions of {topic!r}: "
            "it returns a number, several of them, or None to let the key decide"
        ) from None
    if not 0 <= partition < count:
        raise ValueError(f"the partitioner chose {partition} of the {count} of {topic!r}")
    return partition


def _create_multi_partition_writer(
    node: SinkNode, context: InternalProcessorContext, handle_refusal: Callable[..., None]
) -> Callable[..., None]:
    """Return a function that writes a record to several partitions of a topic (KIP-837).

    A record for which a partitioner has chosen none is dropped and counted.
    """
    produce = context.produce
    measured = context.get_or_create_step_measurements(node.name)

    def produce_to_each(
        topic: str,
        value_bytes: bytes | None,
        key_bytes: bytes | None,
        partitions: tuple[int, ...],
        time_ms: int,
        headers: Any,
        key: Any,
        value: Any,
    ) -> None:
        if not partitions:
            context.dropped_count += 1
            return
        written = measured.get_or_add_topic_counts(topic)
        try:
            for partition in partitions:
                record = (topic, value_bytes, key_bytes, partition, None, None, time_ms, headers)
                try:
                    produce(*record)
                except BufferError:
                    context.wait_for_queue_room()
                    produce(*record)
                written.records += 1
                if written.is_due:
                    measured.measure_written(written, key_bytes, value_bytes, headers, time_ms)
        except Exception as error:
            handle_refusal(error, key, value, topic)

    return produce_to_each


def _create_serializer_lookup(
    node: SinkNode,
) -> Callable[[str], tuple[SerializeKey, SerializeValue]]:
    """Return a function that returns a topic's serialisers, created at its first record."""
    serializers_by_topic: dict[str, tuple[SerializeKey, SerializeValue]] = {}

    def get_serializers(topic: str) -> tuple[SerializeKey, SerializeValue]:
        found = serializers_by_topic.get(topic)
        if found is None:
            key, value = node.key.for_topic(topic, "key"), node.value.for_topic(topic, "value")
            found = serializers_by_topic[topic] = key.serialize, value.serialize
        return found

    return get_serializers


def _create_refusal_handler(
    node: SinkNode, context: InternalProcessorContext
) -> Callable[..., None]:
    """Return a function that handles a record that can't be written, by the production handler."""

    def handle_refusal(
        error: Exception, key: Any, value: Any, topic: str, *, unreadable: bool = False
    ) -> None:
        refusal: StreamsError | None = None
        if isinstance(error, InvalidTopic | UnknownTopic):
            origin = context.describe_record_origin()
            reason = hide_values(str(error), error, key, value)
            refusal = StreamsError(f"step {node.name!r} can't write {origin}: {reason}")
        elif unreadable:
            refusal = SerdeError(
                f"step {node.name!r} can't write to topic {topic!r} with serdes "
                f"key={node.key.name} value={node.value.name}: "
                f"{hide_values(describe_serde_error(error), error, key, value)}; "
                f"key {quote_value(key)}, value {quote_value(value)}, "
                f"from {context.describe_record_origin()}"
            )
        context.skip_record_or_raise(
            Stage.PRODUCTION, node.name, error, refusal, key=key, value=value, target_topic=topic
        )

    return handle_refusal
